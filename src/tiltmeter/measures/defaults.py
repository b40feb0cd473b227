"""The measures that come by default."""

from __future__ import annotations

from tiltmeter.measures.class_accuracy import class_accuracy
from tiltmeter.measures.confidence import confidence
from tiltmeter.measures.error import error
from tiltmeter.measures.loss import loss
from tiltmeter.measures.margin import margin
from tiltmeter.measures.rates import rates
from tiltmeter.measures.snapshot import Measure
from tiltmeter.measures.squared_error import squared_error

DEFAULTS: tuple[Measure, ...] = (loss, error, squared_error, margin, confidence, rates, class_accuracy)
