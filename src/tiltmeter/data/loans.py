"""loans: made-up applications in which women earn less and repay as often, so that a model misses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tiltmeter.data.grouped import GroupedData
from tiltmeter.question import Question

if TYPE_CHECKING:
    import pandas as pd

#: What a decision of the model means to an applicant.
QUESTION = Question("approved", "repaid")


def loans_table(applications: int = 8000, seed: int = 0) -> pd.DataFrame:
    """The applications as a table: sex, income, debt, years in the job, and whether the loan was repaid.

    >>> table = loans_table()
    >>> list(table.columns)
    ['sex', 'income', 'debt', 'years', 'repaid']
    >>> bool(table.groupby("sex").income.mean()["women"] < table.groupby("sex").income.mean()["men"])
    True

    Args:
        applications: Rows of the table.
        seed: Seed of the random draws; the same seed gives the same table.
    """
    import pandas as pd

    rng = np.random.default_rng(seed)
    sex = rng.choice(["women", "men"], applications, p=[0.3, 0.7])
    usual = np.where(sex == "women", 34, 40)
    income, debt, years = (
        rng.normal(usual, 8),
        rng.normal(10, 4, applications),
        rng.integers(0, 20, applications),
    )
    score = 0.2 * (income - usual - 2) - 0.2 * (debt - 10) + 0.05 * (years - 10)
    repaid = np.where(score + 0.7 * rng.logistic(size=applications) > 0, "yes", "no")
    table = {"sex": sex, "income": income, "debt": debt, "years": years, "repaid": repaid}
    return pd.DataFrame(table).round(1)


def loans(applications: int = 8000, seed: int = 0, held_out: float = 0.2) -> tuple[GroupedData, GroupedData]:
    """Applications to train on and held-out ones, with the question that a decision answers.

    >>> train, held_out = loans()
    >>> held_out.sizes, held_out.question.asked
    ({'men': 1117, 'women': 483}, 'tpr')

    Women repay as often as men and earn less, so a model that sees incomes approves fewer of those who would repay.
    Columns are scaled by the training part.

    Args:
        applications: Applications in all.
        seed: Seed of the table and of the split.
        held_out: Share that is held out.
    """
    table = loans_table(applications, seed)
    columns = table[["income", "debt", "years"]].to_numpy(dtype=float)
    repaid = (table["repaid"] == "yes").to_numpy().astype(int)
    whole = GroupedData(columns, repaid, table["sex"].to_numpy(), question=QUESTION)
    train, rest = whole.split(held_out, seed)
    middle, width = train.x.mean(0, dtype=np.float64), train.x.std(0, dtype=np.float64)
    scaled = [part.with_points(((part.x - middle) / width).astype(np.float32)) for part in (train, rest)]
    return scaled[0], scaled[1]
