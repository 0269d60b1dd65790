"""Random executables: ELF of three machines with symbols of all kinds, machine code with calls, and DWARF line
tables."""
import struct

LOCAL, GLOBAL, WEAK, UNIQUE = 0, 1, 2, 10
NOTYPE, OBJECT, FUNC, SECTION, FILE, TLS, IFUNC = 0, 1, 2, 3, 4, 6, 10
X86_64, I386, AARCH64 = 62, 3, 183
MANGLED = ["_Z3foov", "_ZN3app5Shape4areaEv", "_ZNSt6vectorIiSaIiEE9push_backERKi", "_ZN12_GLOBAL__N_16hiddenEd",
           "_ZNK4math6MatrixILi3EE3detEv", "_ZplRK7ComplexS1_", "_ZZ4mainENKUlvE_clEv", "_Z1fIJidEEvDpT_",
           "_Znotmangled",
           "_ZN4core3fmt5Write9write_str17h0123456789abcdefE", "_ZN3std2io5stdio6_print17h52a1b3c4d5e6f708E",
           "_ZN54_$LT$T$u20$as$u20$core..any..Any$GT$7type_id17hfedcba9876543210E", "_GLOBAL__I_alpha",
           "_GLOBAL__sub_I_x"]
WORDS = ["alpha", "beta", "gamma", "main", "parse", "eval", "walk", "f", "g", "h", "mcount", "_mcount", "__mcleanup",
         "_start",
         "__libc_start", "etext", "_etext", "data", "quite_a_long_function_name_of_forty_chars"]
SUFFIXES = [".0", ".123", ".1.2", ".clone.1", ".constprop.0", ".part.0", ".isra.0", ".cold", ".", ".clone.", "..1",
            "$x", ".a",
            ".constprop.0.1", ".clone.1.constprop.2", ".9x", ".llvm.77"]
# What gprof reads behind a local name that ends in digits: often nothing that decides, often much.
NEIGHBOURS = ["", "", "x", "$", "a$b", ".9x", "y.cold", "z.part.0", "z.7", ".", "$.1", ".constprop.", ".constprop.3",
              "w.clone.2", "5", "__gnu_compiled"]
SOURCES = ["main.c", "/src/lib/walk.c", "/src/main.c", "eval.c", "/other/walk.c", "a.b.c"]


def make_name(r, n):
    kind = r.random()
    if kind < 0.12:
        return r.choice(MANGLED)
    if kind < 0.30:
        return r.choice(WORDS)
    name = "_" * r.choice([0, 0, 0, 0, 1, 1, 2]) + r.choice(WORDS[:10]) + str(r.randrange(3 * n + 3))
    if r.random() < 0.15:
        name += r.choice(SUFFIXES)
    elif r.random() < 0.1:
        name += r.choice(SUFFIXES[:5])
    return name


class Executable:
    """An ET_EXEC with sections .init, .text, .fini, .data and a symbol table.

    scannable: .text is all the code there is, so that gprof -c, which reads the code of symbols elsewhere from memory
    that is not its own, has defined answers."""

    def __init__(self, r):
        self.r = r
        self.machine = r.choices([X86_64, I386, AARCH64], [70, 20, 10])[0]
        self.pointer = 4 if self.machine == I386 else 8
        self.scannable = r.random() < 0.3
        self.functions = r.random() < 0.97  # without any, gprof takes every symbol for one
        base = 0x400000 if self.scannable else r.choice([0x400000, 0x401000, 0x10000, 0x400003])
        self.sections = []  # name, flags, address, size
        at = base
        size = r.choice([64, 200, 1000, 4096, 30000])
        outside = 0 if self.scannable else 1
        for name, flags, length in ((".init", 6, outside * r.choice([0, 0, 23, 64])), (".text", 6, size),
                                    (".fini", 6, outside * r.choice([0, 9, 300])), (".rodata", 2, 64),
                                    (".data", 3, 128)):
            if length == 0:
                continue
            at += 0x100000 if name == ".data" else 0  # its last symbol lies behind every histogram
            self.sections.append((name, flags, at, length))
            at += length + r.choice([0, 0, 1, 16, 100])
        self.code = [s for s in self.sections if s[1] & 4]
        self.low, self.high = self.code[0][2], self.code[-1][2] + self.code[-1][3]
        self.symbols = []  # name, type, bind, section index, value, size
        self.has_end = r.random() < 0.7
        self.text = next(s for s in self.sections if s[0] == ".text")
        self.has_lines = self.machine != I386 and r.random() < 0.3
        self.fill()
        self.code_bytes = self.make_code()

    def section_number(self, section):
        return 1 + self.sections.index(section)

    def add(self, name, kind, bind, section, value):
        number = section if isinstance(section, int) else self.section_number(section)
        if kind == FUNC and not self.functions:
            kind = NOTYPE
        self.symbols.append((name, kind, bind, number, value, self.r.choice([0, 1, 8, 40])))

    def fill(self):
        r = self.r
        n = r.choice([1, 3, 10, 30, 100, 300]) if r.random() < 0.99 else 2000
        used = []
        for _ in range(n):
            section = r.choice(self.sections if r.random() < 0.1 else self.code)
            value = r.randrange(section[2], section[2] + section[3])
            if used and r.random() < 0.2:
                section, value = r.choice(used)
            elif r.random() < 0.5 and section[3] >= 16:
                value = section[2] + (value - section[2]) // 16 * 16
            used.append((section, value))
            kind = r.choices([FUNC, NOTYPE, OBJECT, SECTION, FILE, IFUNC, TLS], [70, 18, 5, 2, 2, 2, 0])[0]
            bind = r.choices([LOCAL, GLOBAL, WEAK, UNIQUE], [35, 45, 18, 2])[0]
            where = section
            if r.random() < 0.03:
                where = r.choice([0, 0xfff1, 0xfff2])
                if where == 0xfff1 and bind == WEAK:
                    bind = GLOBAL
            if where == 0:
                value = 0
                bind = GLOBAL if bind == UNIQUE else bind
            name = make_name(r, n) if where == section else "nowhere%d" % r.randrange(n)
            self.add(name, FILE if kind == FILE else kind, LOCAL if kind in (FILE, SECTION) else bind,
                     0xfff1 if kind == FILE else where, 0 if kind == FILE else value)
        r.shuffle(self.symbols)
        if self.has_lines:  # gprof believes in a line only where it knows of a function
            self.symbols.append(("text_begin", FUNC, GLOBAL, self.section_number(self.text), self.text[2], 8))
        # In front of everything stands a function; behind it a data symbol, or one address has two names.
        self.add("first", FUNC, GLOBAL, self.code[0], self.low)
        # with -l gprof takes the end of the last function in front of data_start from memory that is not its own
        if self.scannable:
            self.add("last", FUNC, GLOBAL, self.text, self.text[2] + self.text[3] - 8)
        if self.has_end:
            data = self.sections[-1]
            self.add("data_start", NOTYPE, WEAK, data, data[2] + data[3])
        else:
            self.add("second", FUNC, GLOBAL, self.code[0], self.low)
        self.symbols.sort(key=lambda s: s[2] != LOCAL)

    def addresses(self):
        return [s[4] for s in self.symbols if s[4]]

    def make_code(self):
        """Bytes of .text: some calls to symbols, forwards and backwards, and some operands that lead nowhere."""
        r, start, size = self.r, self.text[2], self.text[3]
        code = bytearray(r.choice([0x90, 0xcc, 0xe8, 0x00]) if r.random() < 0.02 else 0x90 for _ in range(size))
        targets = self.addresses()
        for _ in range(r.choice([0, 5, 40, 300])):
            at = r.randrange(0, size - 8)
            to = r.choice(targets) + r.choice([0, 0, 0, 1])
            if self.machine == AARCH64:
                at &= ~3
                word = r.choice([0x94000000, 0x14000000]) | (to - start - at) >> 2 & 0x3ffffff
                code[at:at + 4] = struct.pack("<I", word)
            else:
                code[at:at + 5] = struct.pack("<BI", 0xe8, to - start - at - 5 & 0xffffffff)
        code[-8:] = b"\x90" * 8  # gprof reads operands behind the end
        return bytes(code)

    def file_names(self):
        return SOURCES

    def make_dwarf(self):
        """.debug_abbrev, .debug_info, .debug_line and .debug_ranges (DWARF 4): each unit has one file and a stretch of
        .text, and perhaps functions and inlined copies of others there."""
        r, start, size = self.r, self.text[2], self.text[3]
        cuts = sorted({0, size} | {r.randrange(1, size) for _ in range(r.choice([0, 1, 3]))})
        abbrev = (b"\x01\x11\x01\x03\x08\x1b\x08\x10\x17\x11\x01\x12\x07\x13\x0b\0\0"  # a unit
                  b"\x02\x2e\0\x03\x08\x20\x0b\0\0"  # a function that is nowhere but inlined
                  b"\x03\x2e\0\x03\x08\x11\x01\x12\x07\0\0"  # a function
                  b"\x04\x1d\0\x31\x13\x11\x01\x12\x01\0\0"  # a copy, from and to
                  b"\x05\x1d\0\x31\x13\x55\x17\0\0\0")  # a copy in pieces
        info, lines, ranges = bytearray(), bytearray(), bytearray(16)
        for low, high in zip(cuts, cuts[1:]):
            if r.random() < 0.2 and len(cuts) > 2:
                continue
            source = r.choice(SOURCES)
            body = (b"\x01" + source.encode() + b"\0/build\0"
                    + struct.pack("<IQQB", len(lines), start + low, high - low, 12) +
                    self.make_entries(start + low, start + high, 11 + 2 + len(source) + 7 + 21, ranges) + b"\0")
            unit = struct.pack("<HIB", 4, 0, 8) + body
            info += struct.pack("<I", len(unit)) + unit
            lines += self.make_line_unit(source, start + low, start + high)
        return abbrev, bytes(info), bytes(lines), bytes(ranges)

    def make_entries(self, low, high, at, ranges):
        """Functions and copies in [low, high); at is where they begin in their unit."""
        r, out, abstract = self.r, bytearray(), []
        for _ in range(r.choice([0, 0, 1, 3])):
            abstract.append(at + len(out))
            out += b"\x02" + make_name(r, 9).encode() + b"\0\x01"

        def piece():
            begin = r.randrange(low, high)
            return begin, min(high, begin + r.choice([1, 4, 4, 16, 60, 400]))
        for _ in range(r.choice([0, 1, 4, 20])):
            begin, end = piece()
            kind = r.random()
            if kind < 0.4 or not abstract:
                out += b"\x03" + make_name(r, 9).encode() + b"\0" + struct.pack("<QQ", begin, end - begin)
            elif kind < 0.7:
                out += b"\x04" + struct.pack("<IQQ", r.choice(abstract), begin, end)
            else:
                out += b"\x05" + struct.pack("<II", r.choice(abstract), len(ranges))
                for begin, end in [(begin, end)] + [piece() for _ in range(r.randrange(3))]:
                    ranges += struct.pack("<QQ", begin - low, end - low)
                ranges += bytes(16)
        return bytes(out)

    def make_line_unit(self, source, low, high):
        r = self.r
        lengths = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])
        tables = b"\0" + source.encode() + b"\0\0\0\0" + b"\0"
        head = struct.pack("<BBBbBB", 1, 1, 1, -5, 14, 13) + lengths + tables
        program = bytearray(b"\0\x09\x02" + struct.pack("<Q", low))
        at, line = low, 1
        while at < high:
            new = r.choice([0, line + 1, line + 3, line, r.randrange(1, 60)]) if at > low else 1 + r.randrange(9)
            program += b"\x03" + self.sleb(new - line) + b"\x01"  # advance line, copy
            line = new
            step = min(r.choice([1, 4, 16, 16, 100, 1000]), high - at)
            program += b"\x02" + self.uleb(step)
            at += step
        program += b"\0\x01\x01"
        body = struct.pack("<HI", 4, len(head)) + head + program
        return struct.pack("<I", len(body)) + body

    @staticmethod
    def uleb(value):
        out = bytearray()
        while True:
            byte, value = value & 127, value >> 7
            out.append(byte | (128 if value else 0))
            if not value:
                return bytes(out)

    @staticmethod
    def sleb(value):
        out = bytearray()
        while True:
            byte, value = value & 127, value >> 7
            done = value == 0 and not byte & 64 or value == -1 and byte & 64
            out.append(byte | (0 if done else 128))
            if done:
                return bytes(out)

    def make_strings(self):
        """The string table and where each symbol's name stands: in the order of the symbols or in another, some names
        the end of a longer one, with strings between them that no symbol has."""
        r, strings, places = self.r, bytearray(b"\0"), {}
        names = [s[0] for s in self.symbols]
        if r.random() < 0.5:
            r.shuffle(names)
        between = r.choice([0, 0.1, 0.5, 1])
        for name in names:
            if name in places and r.random() < 0.5:
                continue
            prefix = r.choice(["", "", "", "long", "x.", "x$"])
            places[name] = len(strings) + len(prefix)
            strings += (prefix + name).encode() + b"\0"
            for _ in range(r.choice([1, 1, 2, 3]) if r.random() < between else 0):
                strings += r.choice(NEIGHBOURS).encode() + b"\0"
        return strings, places

    def symbol_entry(self, name, kind, bind, number, value, size):
        if self.pointer == 8:
            return struct.pack("<IBBHQQ", name, bind << 4 | kind, 0, number, value, size)
        return struct.pack("<IIIBBH", name, value, size, bind << 4 | kind, 0, number)

    def write(self, path):
        wide = self.pointer == 8
        header_size, section_size, program_size = (64, 64, 56) if wide else (52, 40, 32)
        strings, places = self.make_strings()
        table = bytearray(24 if wide else 16)
        for name, kind, bind, number, value, size in self.symbols:
            table += self.symbol_entry(places[name], kind, bind, number, value, size)
        locals_ = 1 + sum(s[2] == LOCAL for s in self.symbols)
        parts, headers, names = [], [bytes(section_size)], bytearray(b"\0")
        layout = "<IIQQQQIIQQ" if wide else "<IIIIIIIIII"
        offset = header_size + program_size

        def section(name, kind, flags, address, content, link=0, info=0, entry=0):
            nonlocal offset
            headers.append(struct.pack(layout, len(names), kind, flags, address, offset, len(content), link, info, 1,
                                       entry))
            names.extend(name.encode() + b"\0")
            parts.append(content)
            offset += len(content)

        for name, flags, address, size in self.sections:
            section(name, 1, flags, address, self.code_bytes if name == ".text" else b"\x90" * size)
        if self.has_lines:
            for name, content in zip((".debug_abbrev", ".debug_info", ".debug_line", ".debug_ranges"),
                                     self.make_dwarf()):
                section(name, 1, 0, 0, content)
        k = len(headers) - 1
        section(".symtab", 2, 0, 0, bytes(table), k + 2, locals_, 24 if wide else 16)
        section(".strtab", 3, 0, 0, bytes(strings))
        names_header = len(names)
        names.extend(b".shstrtab\0")
        headers.append(struct.pack(layout, names_header, 3, 0, 0, offset, len(names), 0, 0, 1, 0))
        parts.append(bytes(names))
        offset += len(names)
        ident = b"\x7fELF" + bytes([2 if wide else 1, 1, 1]) + bytes(9)
        header = ident + struct.pack("<HHIQQQIHHHHHH" if wide else "<HHIIIIIHHHHHH", 2, self.machine, 1, self.low,
                                     header_size, offset,
                                     0, header_size, program_size, 1, section_size, len(headers), len(headers) - 1)
        at, size = header_size + program_size, self.high - self.low
        load = (struct.pack("<IIQQQQQQ", 1, 5, at, self.low, self.low, size, size, 1) if wide else
                struct.pack("<IIIIIIII", 1, at, self.low, self.low, size, size, 5, 1))
        with open(path, "wb") as f:
            f.write(header + load + b"".join(parts) + b"".join(headers))
