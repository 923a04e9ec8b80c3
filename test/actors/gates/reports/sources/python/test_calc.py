import pytest

from calc import add, sign


def test_add():
    assert add(1, 2) == 3


@pytest.mark.skip(reason="later")
def test_later():
    pass


@pytest.mark.xfail
def test_known():
    assert add(1, 1) == 3


@pytest.mark.parametrize("number", [1, 2])
def test_sign(number):
    assert sign(number) == 1


def test_fails():
    assert sign(1) == 2


@pytest.fixture
def broken():
    raise RuntimeError("no database")


def test_set_up(broken):
    pass
