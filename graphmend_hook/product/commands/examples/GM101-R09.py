def f(x):
    seen = []
    print(f'{seen} {seen.append(1)}')
    return x + len(seen)

# becomes

def f(x):
    seen = []
    added = seen.append(1)
    print(f'{seen} {added}')
    return x + len(seen)
