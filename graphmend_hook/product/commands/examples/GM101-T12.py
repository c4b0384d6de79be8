def f(x):
    try:
        assert x.sum() > 0, 'negative'
    finally:
        print('done')
    return x + 1

# becomes

def f(x):
    assert x.sum() > 0, 'negative'
    print('done')
    return x + 1
