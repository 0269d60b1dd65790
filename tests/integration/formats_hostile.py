# not a test
"""A program whose functions have hostile names: quotes, separators, markup, escapes, bytes that are not UTF-8."""
import os

from harness import Gmon, bounds, run, symbols


def hostile_program(folder):
    """(executable, gmon.out) with ticks everywhere."""
    unseen = ["zero\u200bwidth", "\u202egnp.exe", "\ufeffmark", "tag\U000e0041\U000e007f", "soft\u00adhyphen",
              "\u2066isolate", "join\u2060er"]
    names = [*(name.encode() for name in unseen), b'+1+1', b'-1+1', b'@SUM(1)', b"'quoted", "\uff1d1+1".encode(),
             b'a;b', b'semi"colon', b'</script><img src=x>', b'x\n y', b'=1+1', b'%s%n', b'\x1b]0;t\x07', b'\xff\xfe',
             b'a,b\r\n', b'\\l\\']
    source, exe = os.path.join(folder, "hostile.c"), os.path.join(folder, "hostile")
    stand_in = [f"hostile_{n}_".ljust(24, "x") for n in range(len(names))]
    with open(source, "w") as f:
        for name in stand_in:
            f.write(f'__attribute__((noinline)) void {name}(void) {{ __asm__ volatile("nop"); }}\n')
        f.write("int main(void) {" + "".join(f"{name}();" for name in stand_in) + "return 0; }\n")
    done = run("gcc", "-pg", "-O1", "-no-pie", "-o", exe, source)
    assert done.returncode == 0, done.stderr
    low, high = bounds(exe)
    code = symbols(exe)["_init"][0]  # below there are headers only, and no tick
    image = open(exe, "rb").read()
    for name, place in zip(names, stand_in): # in the string table
        image = image.replace(place.encode() + b"\0", name.ljust(len(place) + 1, b"\0"))
    open(exe, "wb").write(image)
    g = Gmon(low, high)
    for address in range(code + 0x10 & ~3, high - 8, 4):
        g.tick(address, 7)
    path = g.write(os.path.join(folder, "hostile.gmon"))
    return exe, path
