@contextlib.contextmanager
def section():
    try:
        yield
    except ValueError:
        pass

def f(x):
    with section():
        print('in f')
        x = x + 1
    return x

# becomes

@contextlib.contextmanager
def section():
    try:
        yield
    except ValueError:
        pass

def f(x):
    print('in f')
    with section():
        x = x + 1
    return x
