#!/usr/bin/python3
"""Writes values of the functions of Math by arithmetic of 200 bits (MPFR, of Debian's python3-gmpy2).

golden.py N [FUNCTION...] >golden.gz: N arguments of each function, the hardest of many random ones among them.
"""
import gzip
import math
import random
import struct
import sys

import gmpy2
from gmpy2 import mpfr

gmpy2.get_context().precision = 200
gmpy2.get_context().emax = gmpy2.get_emax_max()
gmpy2.get_context().emin = gmpy2.get_emin_min()
INF, NAN, LEAST, MOST = math.inf, math.nan, 5e-324, 1.7976931348623157e308


def bits(x):
    return struct.unpack("<q", struct.pack("<d", x))[0]


def of_bits(n):
    return struct.unpack("<d", struct.pack("<q", n))[0]


def step(x, n):
    return of_bits(bits(x) + n)


def power(x, y):  # of ECMAScript
    if math.isnan(y) or (abs(x) == 1 and math.isinf(y)):
        return mpfr(NAN)
    return mpfr(x) ** mpfr(y)


def rounded(x):
    whole = math.floor(x) if abs(x) < 2**52 else x
    return math.copysign(whole + (x - whole >= 0.5), x) if math.isfinite(x) else x


def kept(f):
    return lambda x: mpfr(f(x)) if math.isfinite(x) and abs(x) < 2**53 else mpfr(x)


def least(x, y):
    return mpfr(NAN) if x != x or y != y else mpfr(min(x, y, key=lambda v: (v, math.copysign(1, v))))


def most(x, y):
    return mpfr(NAN) if x != x or y != y else mpfr(max(x, y, key=lambda v: (v, math.copysign(1, v))))


def single(x):
    try:
        return mpfr(struct.unpack("<f", struct.pack("<f", x))[0])
    except OverflowError:
        return mpfr(math.copysign(INF, x))


def of(f):
    return lambda x: f(mpfr(x))


FUNCTIONS = {  # the function, and where most of its arguments lie
    "abs": (lambda x: mpfr(abs(x)), (-10, 10)),
    "acos": (of(gmpy2.acos), (-1, 1)), "acosh": (of(gmpy2.acosh), (1, 100)), "asin": (of(gmpy2.asin), (-1, 1)),
    "asinh": (of(gmpy2.asinh), (-10, 10)), "atan": (of(gmpy2.atan), (-10, 10)),
    "atan2": (lambda y, x: gmpy2.atan2(mpfr(y), mpfr(x)), (-10, 10)),
    "atanh": (of(gmpy2.atanh), (-1, 1)), "cbrt": (of(gmpy2.cbrt), (-1000, 1000)),
    "ceil": (kept(lambda x: math.copysign(math.ceil(x), x)), (-100, 100)),
    "cos": (of(gmpy2.cos), (-100, 100)), "cosh": (of(gmpy2.cosh), (-40, 40)),
    "exp": (of(gmpy2.exp), (-50, 50)), "expm1": (of(gmpy2.expm1), (-2, 2)),
    "floor": (kept(lambda x: math.copysign(math.floor(x), x)), (-100, 100)),
    "fround": (single, (-10, 10)),
    "hypot": (lambda x, y: gmpy2.hypot(mpfr(x), mpfr(y)), (-10, 10)),
    "log": (of(gmpy2.log), (0, 100)), "log10": (of(gmpy2.log10), (0, 1000)), "log1p": (of(gmpy2.log1p), (-1, 2)),
    "log2": (of(gmpy2.log2), (0, 100)), "max": (most, (-10, 10)), "min": (least, (-10, 10)), "pow": (power, (-10, 10)),
    "round": (lambda x: mpfr(rounded(x)), (-100, 100)),
    "sign": (lambda x: mpfr(x if x == 0 or x != x else math.copysign(1, x)), (-1, 1)),
    "sin": (of(gmpy2.sin), (-100, 100)), "sinh": (of(gmpy2.sinh), (-40, 40)), "sqrt": (of(gmpy2.sqrt), (0, 100)),
    "tan": (of(gmpy2.tan), (-100, 100)), "tanh": (of(gmpy2.tanh), (-3, 3)),
    "trunc": (kept(lambda x: math.copysign(math.trunc(x), x)), (-100, 100)),
}
TWO = ("atan2", "hypot", "max", "min", "pow")


def answer(f, args):
    """Returns the nearest double, and the rest in 2^-16 of its unit in the last place."""
    exact = f(*args)
    near = float(exact)
    if near != near:
        return NAN, 0
    if math.isinf(near) or near == 0 and exact == 0:
        return near, 0
    rest = int(gmpy2.rint((exact - mpfr(near)) / mpfr(math.ulp(near)) * 65536))
    return near, max(-32768, min(32767, rest))


def edges():
    values = [0.0, LEAST, 2 * LEAST, of_bits(2**52 - 1), 2.0**-1022, MOST, INF, 2.0**-30, 2.0**-27, 2.0**-35, 0.5, 1.0, 1.5, 2.0, 2.5,
              0.49999999999999994, 2.0**52, 2.0**53, 2.0**53 - 1, 2.0**63, 2.0**64, 22.0, 40.0, 60.0, 708.0, 709.5, 709.782712893384,
              709.7827128933841, 710.4758600739439, 744.4400719213812, 745.1332191019412, 1021.0, 1024.0, 1074.0, 1075.0, 2.0**19,
              2.0**500, 2.0**0.5, math.pi, math.e, 3.4028235677973366e38, 1e-45]
    values += [step(v, d) for v in list(values) if 0 < v < INF for d in (-1, 1) if v != MOST or d < 0]
    return [v for x in values for v in (x, -x)] + [NAN]


def multiples():
    """Returns doubles that are very near to multiples of π/256: convergents of continued fractions."""
    found = []
    with gmpy2.local_context(gmpy2.context(), precision=2400):
        unit = gmpy2.const_pi() / 256
        for e in range(-60, 971):
            x = gmpy2.mul_2exp(mpfr(1), e) / unit if e >= 0 else gmpy2.div_2exp(mpfr(1), -e) / unit
            p, q, before, rest = 1, 0, (0, 1), x  # q * 2^e is near to a multiple
            while q < 2**53:
                if 2**48 <= q:
                    found.append(math.ldexp(q, e))
                whole = int(gmpy2.floor(rest))
                before, (p, q) = (p, q), (whole * p + before[0], whole * q + before[1])
                rest = 1 / (rest - whole)
    return found


def arguments(name, f, span, count, rng):
    two = name in TWO
    fixed = [(x,) for x in edges()]
    if two:
        some = [x for x in edges() if x != x or abs(x) in (0, LEAST, 1, 2, 0.5, 2.5, 2.0**53, 2.0**53 - 1, MOST, INF, 709.5, 1e-45)]
        fixed = [(x, y) for x in some for y in some]
    values = [float(k) for k in range(-30, 31)] + [2.0**k for k in range(-1074, 1024, 7)] + [float("1e%d" % k) for k in range(-323, 309)]
    values += [step(1.0, d) for d in range(-12, 13)] + [1 + d * 2.0**-k for k in range(1, 53) for d in (1, -1)]
    values += [s * float(k**3) for k in range(1, 200, 9) for s in (1, -1)]
    if name in ("sin", "cos", "tan"):
        values += multiples()
    if two:
        fixed += [(rng.choice(values), rng.choice(values)) for _ in range(count // 10)]
        if name == "pow":
            fixed += [(10.0, float(k)) for k in range(-330, 312)]
            fixed += [(a, float(k)) for a in (2.0, 3.0, -3.0, 1.5, 7.0, 0.1) for k in range(-40, 41)]
            fixed += [(float(k), e) for k in range(1, 40) for e in (0.5, -0.5, 1 / 3, 1.5, 3.0)]
            fixed += [(1 + k * 2.0**-e, s * 2.0**(e - j)) for e in range(1, 52) for k in (1, -1) for s in (1, -1) for j in (-5, -8, 0)]
    else:
        fixed += [(x,) for x in values]
    if len(fixed) > count // 2:
        fixed = rng.sample(fixed, count // 2)

    def wide():
        return of_bits(rng.getrandbits(63)) * rng.choice((1, -1))

    def narrow():
        return rng.uniform(*span)

    def random_arguments():
        kind = rng.randrange(10)
        if name == "pow":
            x = abs(wide()) if kind < 4 else abs(narrow()) + 1e-9
            if kind < 7 and x not in (0, 1, INF) and x == x:  # with a result in range
                return x, rng.uniform(-745, 710) / math.log(x)
            return x, narrow()
        if two:
            if kind < 2:
                return wide(), wide()
            if kind < 4:
                x = wide()
                return x, x * rng.uniform(0.001, 1000)
            return narrow(), narrow()
        if kind < 2:
            return (wide(),)
        if kind < 4:
            return (math.ldexp(rng.uniform(1, 2), rng.randrange(-40, 12)) * rng.choice((1, -1)),)
        if kind < 5 and name in ("exp", "expm1", "sinh", "cosh"):
            return (rng.uniform(-745, 711),)
        return (narrow(),)

    # Of the random ones a fifth is the hardest: nearest to the middle of two doubles.
    ordinary = [random_arguments() for _ in range((count - len(fixed)) * 4 // 5)]
    hard = sorted((random_arguments() for _ in range(5 * count)), key=lambda a: -abs(answer(f, a)[1]))
    return fixed + ordinary + hard[:count - len(fixed) - len(ordinary)]


def main():
    count, names = int(sys.argv[1]), sys.argv[2:] or list(FUNCTIONS)
    out = bytearray()
    for name in names:
        f, span = FUNCTIONS[name]
        args = arguments(name, f, span, count, random.Random(name))
        answers = [answer(f, a) for a in args]
        out += struct.pack("<B%dsBI" % len(name), len(name), name.encode(), len(args[0]), len(args))
        for column in zip(*args):
            out += struct.pack("<%dd" % len(args), *column)
        out += struct.pack("<%dd" % len(args), *(a[0] for a in answers))
        out += struct.pack("<%dh" % len(args), *(a[1] for a in answers))
    sys.stdout.buffer.write(gzip.compress(bytes(out), 9, mtime=0))


if __name__ == "__main__":
    main()
