def add(a, b):
    return a + b


def sign(n):
    if n >= 0:
        return 1
    return -1
