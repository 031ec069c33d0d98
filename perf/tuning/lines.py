"""From times to a few straight lines alpha + bytes / rate that grow with the size throughout."""

import math

MOST_LINES = 4  # of a curve and a number of CTAs; each is read when a call is priced
STEEP = 1.25  # between two lines: more is climbed in STEPS
STEPS = 4
STEPS_FROM = 32 << 10  # bytes; below, no cache is full
MOST_RATE = 10 ** 9  # that a table may hold
WORTH_A_LINE = 0.03  # mean relative error that one line more must save


def grow(times):
    """Times that grow with the size: neighbours that do not are replaced by their mean."""
    pools = []
    for time in times:
        pools.append([math.log(time), 1])
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            value, count = pools.pop()
            pools[-1][0] = (pools[-1][0] * pools[-1][1] + value * count) / (pools[-1][1] + count)
            pools[-1][1] += count
    return [math.exp(value) for value, count in pools for _ in range(count)]


def straight(points):
    """alpha and slope, neither negative, that miss the points least in relative terms; and the squared error."""
    def error(alpha, slope):
        return sum(((alpha + slope * x) / y - 1) ** 2 for x, y in points)

    s = [sum(x ** i / (y * y) for x, y in points) for i in range(3)]
    t = [sum(x ** i / y for x, y in points) for i in range(2)]
    fits = [(t[0] / s[0], 0.0)]
    if s[2] > 0:
        fits.append((0.0, t[1] / s[2]))
    determinant = s[0] * s[2] - s[1] * s[1]
    if len(points) > 1 and determinant > 0:
        fits.append(((t[0] * s[2] - t[1] * s[1]) / determinant, (s[0] * t[1] - s[1] * t[0]) / determinant))
    return min((error(a, b), a, b) for a, b in fits if a >= 0 and b >= 0)


def segments(points, most=MOST_LINES):
    """The points cut into at most `most` runs with a line each: (alpha, slope, first, past the last)."""
    n = len(points)
    best = [[(0.0, [])] + [(math.inf, [])] * n]  # best[k][i]: k lines for the first i points
    for k in range(1, most + 1):
        row = [(math.inf, [])] * (n + 1)
        for i in range(1, n + 1):
            for j in range(i):
                before, lines = best[k - 1][j]
                if before == math.inf or (i - j < 2 and n > 1):
                    continue
                missed, alpha, slope = straight(points[j:i])
                if before + missed < row[i][0]:
                    row[i] = (before + missed, lines + [(alpha, slope, j, i)])
        best.append(row)

    def cost(k):
        return math.sqrt(best[k][n][0] / n) + WORTH_A_LINE * k

    return best[min(range(1, most + 1), key=cost)][n][1]


def fit(times, wire, ctas=1):
    """Lines of a curve for {size: us}. Two lines meet between the last size of one and the first of the next, where they
    are closest; should the next still lie below, it is lifted. Where it lies far above (the caches are full, and no line
    with an alpha of 0 or more is as steep) steps lead up to it."""
    sizes = sorted(times)
    points = [(wire(size), time * 1000) for size, time in zip(sizes, grow([times[size] for size in sizes]))]
    lines = []  # from, alpha, slope
    for alpha, slope, first, _ in segments(points):
        begin = 0
        if lines:
            last, then = sizes[first - 1], sizes[first]

            def before(size, line=lines[-1]):
                return line[1] + line[2] * wire(size)

            def after(size, alpha=alpha, slope=slope):
                return alpha + slope * wire(size)

            spread = [then - (then - last) // 8 * i for i in range(8)]
            begin = min(spread, key=lambda size: abs(after(size) - before(size)))
            if last >= STEPS_FROM and after(begin) > STEEP * before(begin):
                begin = then
                for step in range(1, STEPS):
                    size = int(last * (then / last) ** (step / STEPS)) // 64 * 64
                    time = before(last) * (after(then) / before(last)) ** (step / STEPS)
                    lines.append((size, 0.0, time / wire(size)))
            alpha += max(0, before(begin) - after(begin))
        lines.append((begin, alpha, slope))
    return [{"from_bytes": begin, "ctas": ctas, "alpha_ns": round(alpha), "bytes_per_us": rate(slope)}
            for begin, alpha, slope in lines]


def rate(slope):
    return max(1, min(MOST_RATE, round(1000 / slope))) if slope > 0 else MOST_RATE


def time_at(lines, size, wire):
    """ns, by the line in force; `lines` are those of one number of CTAs."""
    line = [line for line in lines if line["from_bytes"] <= size][-1]
    return line["alpha_ns"] + 1000 * wire / line["bytes_per_us"]
