record = io.StringIO()

def f(x):
    print('in f', file=record)
    return x + 1

# becomes

def f(x):
    print('in f', file=sys.stderr)
    return x + 1
