async def f(x):
    print('in f')
    return x + 1

# becomes

def part(x):
    print('in f')
    return x + 1

async def f(x):
    return part(x)
