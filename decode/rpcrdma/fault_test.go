package rpcrdma_test

import (
	"encoding/binary"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

func TestFault(t *testing.T) {
	words := func(v ...uint32) (b []byte) {
		for _, x := range v {
			b = binary.BigEndian.AppendUint32(b, x)
		}
		return b
	}
	for _, test := range []struct {
		name   string
		b      []byte
		full   int // if the capture has less
		want   rpcrdma.Fault
		offset int
	}{
		{"empty", nil, 0, rpcrdma.FaultShort, 0},
		{"12 bytes", words(1, 1, 32), 0, rpcrdma.FaultShort, 8},
		{"12 bytes captured", words(1, 1, 32), 100, rpcrdma.NoFault, 0},
		{"within the lists", words(1, 1, 32, 0, 0, 0), 0, rpcrdma.FaultShort, 24},
		{"within the lists, captured", words(1, 1, 32, 0, 0, 0), 100, rpcrdma.NoFault, 0},
		{"version 3", words(1, 3, 32, 0, 0, 0, 0), 0, rpcrdma.FaultVersion, 4},
		{"version 3, cut behind it", words(1, 3, 32, 0, 0, 0, 0), 100, rpcrdma.FaultVersion, 4},
		{"proc 9", words(1, 1, 32, 9, 0, 0, 0), 0, rpcrdma.FaultType, 12},
		{"htype 1 of version 2", words(1, 2, 32, 1, 0, 0, 0), 0, rpcrdma.FaultType, 12},
		{"proc 9 of version 0", words(1, 0, 9, 0, 0, 0), 0, rpcrdma.FaultType, 8},
		{"read list", words(1, 1, 32, 0, 7, 0, 0), 0, rpcrdma.FaultList, 16},
		{"write list", words(1, 1, 32, 0, 0, 2, 0), 0, rpcrdma.FaultList, 20},
		{"reply chunk", words(1, 1, 32, 0, 0, 0, 0x80000001), 0, rpcrdma.FaultList, 24},
		{"write segments", words(1, 1, 32, 0, 0, 1, 0xffffffff, 0, 0, 0, 0), 0, rpcrdma.FaultCount, 24},
		{"reply segments", words(1, 1, 32, 0, 0, 0, 1, 0xffffffff, 0, 0, 0), 0, rpcrdma.FaultCount, 28},
		{"error code", words(1, 1, 32, 4, 77), 0, rpcrdma.FaultErrorCode, 16},
		{"range of versions is none", words(1, 1, 32, 4, 1, 3, 1), 0, rpcrdma.FaultContradicts, 20},
		{"range of versions to 16", words(1, 1, 32, 4, 1, 1, 16), 0, rpcrdma.FaultVersion, 24},
		{"answer to version 256", words(1, 256, 32, 4, 1, 1, 1), 0, rpcrdma.FaultVersion, 4},
		{"ERR_CHUNK of version 9", words(1, 9, 32, 4, 2), 0, rpcrdma.FaultVersion, 4},
		{"ERR_VERS with more behind it", append(words(1, 1, 32, 4, 1, 1, 1), make([]byte, 40)...), 0, rpcrdma.FaultContradicts, 28},
		{"another XID", words(1, 1, 32, 0, 0, 0, 0, 2, 0), 0, rpcrdma.FaultContradicts, 28},
		{"cut before the XID", words(1, 1, 32, 0, 0, 0, 0), 100, rpcrdma.NoFault, 0},
	} {
		var h rpcrdma.Header
		_ = h.Decode(test.b, max(test.full, len(test.b)))
		if f, at := h.Fault(); f != test.want || at != test.offset {
			t.Errorf("%s: %q at %d, want %q at %d", test.name, f, at, test.want, test.offset)
		}
	}
	for f := rpcrdma.NoFault + 1; f < rpcrdma.Faults; f++ {
		if f.Code() == "" || f.String() == "" {
			t.Errorf("fault %d has no name", f)
		}
	}
	if rpcrdma.Faults.Code() != "" || rpcrdma.Faults.String() != "" {
		t.Error("what is no fault has a name")
	}
}
