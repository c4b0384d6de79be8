def f(x, share=1.0):
    number = np.random.uniform()
    if number < share:
        x = x * 2
    return x

# becomes

def f(x, share=1.0):
    number = torch.rand(())
    if number < share:
        x = x * 2
    return x
