"""The exact dynamics on a fixed training set, in the limit of many dimensions.

With H = (1/d) sum s_g x x' and h = (1/d) sum s_g y x over the n = alpha d examples, every full-batch method that is
linear in the data gives w = phi(H) h + psi(H) w0 with scalar filters phi and psi of time. The resolvents (H - z)^-1 h
and (H - z)^-1 w0 are known in the limit of many dimensions, so one contour around the spectrum of H gives all times.
SGD adds the noise of its batches: by a Volterra equation where batches are drawn with replacement, by equations in two
times where every epoch is a new shuffle.
"""
