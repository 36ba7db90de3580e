package decode_test

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
)

// Requests for a connection without an answer are counted with their repetitions; those with an answer are not.
func TestAsked(t *testing.T) {
	whole := load(t, "../samples/rocev2-nfs41-recall.pcap")
	asked := func(packets ...capture.Packet) decode.Asked {
		_, st := run(t, packets, 64, decode.Options{})
		return st.Asked
	}
	request := slices.IndexFunc(whole, func(p capture.Packet) bool { return asked(p).Connections == 1 })
	if request < 0 {
		t.Fatal("no REQ")
	}
	var again, wrong []capture.Packet
	for i := range 3 {
		p := whole[request]
		p.Number, p.Time = uint64(i+1), p.Time+int64(i)*4e9
		again = append(again, p)
		p.Data = slices.Clone(p.Data)
		p.Data[len(p.Data)-1] ^= 1
		wrong = append(wrong, p)
	}
	for _, c := range []struct {
		name    string
		packets []capture.Packet
		want    decode.Asked
	}{
		{"answered", whole, decode.Asked{}},
		{"without an answer", again, decode.Asked{Connections: 1, Requests: 3, Longest: 8e9, First: 1}},
		{"wrong ICRC", wrong, decode.Asked{Connections: 1, Requests: 3, BadICRC: 3, Longest: 8e9, First: 1}},
	} {
		if got := asked(c.packets...); got != c.want {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
