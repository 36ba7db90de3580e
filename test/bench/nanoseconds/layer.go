package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// layer is a part of the work, and the functions that do it.
type layer struct {
	name string
	// of are the beginnings of names of functions, without the path of this module.
	of []string
}

// layers are in the order of the way of a packet. A sample of a profile belongs to the innermost function that one of them
// has; a more specific beginning goes before a shorter one, whatever the order here. So a copy, or a lookup in a map, belongs
// to whoever wanted it.
var layers = []layer{
	{"page cache: read(2)", []string{"internal/poll.(*FD).Read", "internal/poll.(*FD).Pread", "os.(*File).Read", "os.Open"}},
	{"records of the file", []string{"capture."}},
	{"CRC", []string{
		"hash/crc32.", "decode/roce.fold", "decode/roce.(*FastDecoder).intact", "decode/roce.(*Checker).", "decode/iwarp.checksum", "decode/iwarp.FPDU.Checksum",
	}},
	{"Ethernet, IP, UDP, TCP, BTH", []string{
		"decode/link.", "decode/roce.(*FastDecoder).", "decode/roce.(*FastPacket).transport", "decode/roce.Decode", "decode/roce.(*Splitter).",
		"decode.(*dissection).",
	}},
	{"connections, operations, streams", []string{
		"decode/roce.", "decode/ibcm.", "decode/tcp.", "decode/iwarp.", "decode.(*tcpDemux).", "decode.(*tcpConn).", "decode.(*udpDemux).",
		"decode/oncrpc.(*Records).", "decode/rdma.",
	}},
	{"transactions, chunk lists", []string{"decode/transaction.", "decode/rpcrdma.", "decode/memory.", "decode."}},
	{"RPC and NFS", []string{"decode/rpc.", "decode/oncrpc.", "decode/nfs", "decode/xdr."}},
	{"summary", []string{"analyze/", "cmd/", "main."}},
	{"goroutines, memory, the rest", []string{
		"decode.(*pipeline).", "runtime.chan", "runtime.select", "runtime.gc", "runtime.mallocgc", "runtime.newobject", "runtime.makeslice", "runtime.growslice",
		"runtime.schedule", "runtime.mcall", "runtime.goexit", "",
	}},
}

// module is what names of functions begin with.
const module = "github.com/rpcrdma/toolkit/"

// layerOf is the index of the layer of a stack, innermost function first.
func layerOf(stack []string) int {
	for _, f := range stack {
		f = strings.TrimPrefix(f, module)
		best, at := 0, -1
		for i := range layers {
			for _, p := range layers[i].of {
				if p != "" && len(p) > best && strings.HasPrefix(f, p) {
					best, at = len(p), i
				}
			}
		}
		if at >= 0 {
			return at
		}
	}
	return len(layers) - 1
}

// traces reads what "go tool pprof -traces" prints, and adds the times to sums.
func traces(r io.Reader, sums []time.Duration) error {
	const rule = "-----------+"
	var value time.Duration
	var stack []string
	begun := false
	end := func() {
		if len(stack) > 0 {
			sums[layerOf(stack)] += value
		}
		stack = stack[:0]
	}
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line := s.Text()
		if strings.HasPrefix(line, rule) {
			end()
			begun = true
			continue
		}
		words := strings.Fields(strings.TrimSuffix(line, " (inline)"))
		if !begun || len(words) == 0 || strings.HasSuffix(words[0], ":") {
			continue
		}
		if len(stack) == 0 {
			d, err := time.ParseDuration(strings.Replace(words[0], "mins", "m", 1))
			if err != nil || len(words) < 2 {
				return fmt.Errorf("pprof -traces: cannot read %q", line)
			}
			value, words = d, words[1:]
		}
		stack = append(stack, strings.Join(words, " "))
	}
	end()
	return s.Err()
}

// sum adds up times.
func sum(list []time.Duration) (n time.Duration) {
	for d := range slices.Values(list) {
		n += d
	}
	return n
}
