package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLayerOf(t *testing.T) {
	for _, test := range []struct {
		stack []string
		want  string
	}{
		{[]string{"internal/runtime/syscall.Syscall6", "syscall.read", "internal/poll.(*FD).Read", "os.(*File).Read", module + "capture.(*reader).fill"}, "page cache: read(2)"},
		{[]string{"runtime.memmove", module + "capture.(*reader).next"}, "records of the file"},
		{[]string{"hash/crc32.ieeeCLMUL", "hash/crc32.Update", module + "decode/roce.(*FastDecoder).intact"}, "CRC"},
		{[]string{"runtime.memmove", module + "decode/roce.(*FastDecoder).intact"}, "CRC"},
		{[]string{module + "decode/roce.(*FastDecoder).Ethernet"}, "Ethernet, IP, UDP, TCP, BTH"},
		{[]string{module + "decode/roce.(*Tracker).Fast"}, "connections, operations, streams"},
		{[]string{module + "decode.(*tcpDemux).packet"}, "connections, operations, streams"},
		{[]string{module + "decode.(*Decoder).track"}, "transactions, chunk lists"},
		{[]string{"runtime.mapaccess1", module + "decode/transaction.(*Tracker).Send", module + "decode/roce.(*Tracker).request"}, "transactions, chunk lists"},
		{[]string{module + "decode/nfs/nfs3.(*GETATTR3res).Decode", module + "decode/rpc.(*View).Set"}, "RPC and NFS"},
		{[]string{"main.(*summary).add"}, "summary"},
		{[]string{"runtime.lock2", "runtime.chanrecv", module + "decode.(*Decoder).decode"}, "goroutines, memory, the rest"},
		{[]string{"runtime.memclrNoHeapPointers", "runtime.mallocgc", module + "capture.Open"}, "goroutines, memory, the rest"},
		{[]string{"runtime.futex"}, "goroutines, memory, the rest"},
	} {
		if got := layers[layerOf(test.stack)].name; got != test.want {
			t.Errorf("%v: %s, want %s", test.stack, got, test.want)
		}
	}
}

func TestTraces(t *testing.T) {
	const text = `File: rpcrdma-dump
Type: cpu
Duration: 1.20s, Total samples = 1.03s (85.62%)
-----------+-------------------------------------------------------
     bytes:  1kB
      20ms   runtime.memmove
             github.com/rpcrdma/toolkit/decode/roce.(*FastDecoder).intact (inline)
             github.com/rpcrdma/toolkit/decode.(*dissection).batch
-----------+-------------------------------------------------------
     1.01s   main.(*summary).add
-----------+-------------------------------------------------------
`
	sums := make([]time.Duration, len(layers))
	if err := traces(strings.NewReader(text), sums); err != nil {
		t.Fatal(err)
	}
	of := func(name string) time.Duration {
		return sums[slices.IndexFunc(layers, func(l layer) bool { return l.name == name })]
	}
	if a, b := of("CRC"), of("summary"); a != 20*time.Millisecond || b != 1010*time.Millisecond || sum(sums) != a+b {
		t.Errorf("%v", sums)
	}
	if err := traces(strings.NewReader("-----------+\n  nothing here\n"), sums); err == nil {
		t.Error("no error")
	}
}
