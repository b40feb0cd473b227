"""The squared error: closed equations for W = scores in the span, Q = their Gram matrix and the bias.

With Y = e_y - 1/C, sc_g = W mu_g + bias, ybar_g = pi_g - 1/C, P_g = p_g s_g and
YW_g = ybar_g (W mu_g)' + sqrt(D_g) J_g W',

    dW/dt    = -lr sum_g P_g [ D_g W + (sc_g - ybar_g) mu_g' - sqrt(D_g) J_g ] - lr decay W
    dbias/dt = -lr sum_g P_g (sc_g - ybar_g)
    dQ/dt    = -lr sum_g P_g (X_g + X_g') - 2 lr decay Q
               + (lr^2 / batch) sum_g p_g s_g^2 D_g E_g[(s - Y)(s - Y)'],    X_g = D_g Q + sc_g (W mu_g)' - YW_g.
"""

from __future__ import annotations

import numpy as np

from tiltmeter.theory.classes.settings import ClassSettings


def square_velocity(settings: ClassSettings, t: float, flat: np.ndarray) -> np.ndarray:
    """The time derivative of the flat state."""
    data, count = settings.data, len(settings.data.classes)
    W, Q, bias = settings.split(flat)
    lr, p, s = settings.at(t)
    dW, dQ, dbias = -lr * settings.decay * W, -2.0 * lr * settings.decay * Q, np.zeros(count)
    for g, D in enumerate(data.D):
        if p[g] == 0.0:
            continue
        M = W @ data.mu[g]
        score, ybar, pi = M + bias, data.ybar[g], data.pi[g]
        miss, reach = score - ybar, np.sqrt(D) * data.J[g] @ W.T
        YW = np.outer(ybar, M) + reach
        YS = YW + np.outer(ybar, bias)
        Y2 = np.diag(pi) - (pi[:, None] + pi[None, :]) / count + 1.0 / count**2
        X = D * Q + np.outer(score, M) - YW
        squared = np.outer(score, score) + D * Q + Y2 - YS - YS.T
        dW = dW - lr * p[g] * s[g] * (D * W + np.outer(miss, data.mu[g]) - np.sqrt(D) * data.J[g])
        dQ = dQ - lr * p[g] * s[g] * (X + X.T) + lr**2 / settings.batch * p[g] * s[g] ** 2 * D * squared
        if settings.sgd.train_bias:
            dbias = dbias - lr * p[g] * s[g] * miss
    return np.concatenate([dW.ravel(), dQ.ravel(), dbias])
