# With `--guards keep`:

def f(x):
    if x.sum() < 0:
        raise ValueError('negative')
    return x + 1

# is mended without `--guards keep`
