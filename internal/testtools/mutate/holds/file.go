package holds

import (
	"math/rand/v2"

	"github.com/rpcrdma/toolkit/decode/rpc"
)

var fileNames = []string{
	"", "a", "b", "name", "other", "with\x1bescape", "\"", "x\n", "ümlaut", "no UTF-8 \xff", "a directory",
	"a name that is so long that it does not fit into the column of a file in most lines",
}

// ChangeFile changes what a transaction is about, in one half of the cases: its names, its range, or its handle. The change lasts until
// the next transaction is set.
func ChangeFile(random *rand.Rand, f *rpc.File) {
	pick := func() []byte { return []byte(fileNames[random.IntN(len(fileNames))]) }
	number := func() uint64 { return random.Uint64() >> (random.Uint32() % 64) }
	switch random.IntN(20) {
	case 0, 1, 2:
		f.Name = pick()
	case 3, 4:
		f.Name, f.To, f.EOF = pick(), pick(), random.IntN(2) == 0
	case 5, 6:
		f.HasRange, f.Offset, f.Count = true, number(), number()
		f.HasMoved, f.Moved = random.IntN(2) == 0, number()
	case 7:
		f.Handle = nil
	case 8:
		f.Handle, f.Name = append([]byte("unknown "), pick()...), pick()
	case 9:
		f.Handle, f.Name = make([]byte, 250+random.IntN(20)), nil
	}
}
