"""Cross-entropy of a softmax: closed equations whose averages are taken over fixed quadrature nodes.

With e = softmax(s) - e_y and x the input,

    dW/dt    = -lr sum_g P_g E_g[e x'] - lr decay W,        dbias/dt = -lr sum_g P_g E_g[e]
    dQ/dt    = -lr sum_g P_g (E_g[e (W x)'] + transpose) - 2 lr decay Q + (lr^2 / batch) sum_g p_g s_g^2 D_g E_g[e e'].
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from tiltmeter.population.classes.softmax_nodes import SoftmaxNodes, scores_at
from tiltmeter.theory.classes.settings import ClassSettings


def softmax_velocity(settings: ClassSettings, nodes: SoftmaxNodes, t: float, flat: np.ndarray) -> np.ndarray:
    """The time derivative of the flat state."""
    data, count = settings.data, len(settings.data.classes)
    W, Q, bias = settings.split(flat)
    lr, p, s = settings.at(t)
    dW, dQ, dbias = -lr * settings.decay * W, -2.0 * lr * settings.decay * Q, np.zeros(count)
    for g, D in enumerate(data.D):
        if p[g] == 0.0:
            continue
        field, score = scores_at(nodes, g, W, Q, bias)
        miss = softmax(score, axis=1)
        miss[np.arange(len(miss)), nodes.label[g]] -= 1.0
        weighted = miss * nodes.weight[g][:, None]
        inner = weighted.T @ field
        dW = dW - lr * p[g] * s[g] * (weighted.T @ nodes.x[g])
        dQ = dQ - lr * p[g] * s[g] * (inner + inner.T)
        dQ = dQ + lr**2 / settings.batch * p[g] * s[g] ** 2 * D * (weighted.T @ miss)
        if settings.sgd.train_bias:
            dbias = dbias - lr * p[g] * s[g] * weighted.sum(0)
    return np.concatenate([dW.ravel(), dQ.ravel(), dbias])
