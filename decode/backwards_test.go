package decode_test

import (
	"io"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// stamped is a capture whose packets have other times.
type stamped struct {
	capture.Reader
	at func(number uint64, ns int64) int64
}

func (s stamped) Read(b *capture.Batch) error {
	if err := s.Reader.Read(b); err != nil {
		return err
	}
	for i := range b.Packets {
		p := &b.Packets[i]
		p.Time = s.at(p.Number, p.Time)
	}
	return nil
}

// TestBackwards: the decoder counts where the time goes back, whoever counts the packets.
func TestBackwards(t *testing.T) {
	const second = int64(1e9)
	for _, test := range []struct {
		name string
		at   func(number uint64, ns int64) int64
		want decode.Backwards
	}{
		{"as captured", func(_ uint64, ns int64) int64 { return ns }, decode.Backwards{}},
		{"no times", func(uint64, int64) int64 { return 0 }, decode.Backwards{}},
		{"set back", func(n uint64, _ int64) int64 {
			if n >= 100 {
				return int64(n) * 1000
			}
			return 3*second + int64(n)*1000
		}, decode.Backwards{Count: 1, Most: 3*second - 1000, First: 100}},
		{"twice", func(n uint64, _ int64) int64 { return second*int64(5-n/100) + int64(n) }, decode.Backwards{Count: 2, Most: second - 1, First: 100}},
		{"before 1970", func(n uint64, _ int64) int64 { return int64(n)*1000 - 7*second }, decode.Backwards{}},
		{"to before 1970", func(n uint64, _ int64) int64 { return -second * int64(n/200) }, decode.Backwards{Count: 1, Most: second, First: 200}},
		{"queues of an adapter", func(n uint64, _ int64) int64 { return int64(n)*1000 - decode.MaxBack*int64(n%2) + 2000 }, decode.Backwards{}},
	} {
		for _, trackers := range []int{0, 3} {
			f, err := capture.Open([]string{"../samples/rocev2-nfs41-recall.pcap"}, capture.Options{})
			if err != nil {
				t.Fatal(err)
			}
			d := decode.New(decode.Options{Trackers: trackers}, func(*transaction.Transaction) {})
			if err := d.Run(stamped{f, test.at}); err != nil && err != io.EOF {
				t.Fatal(err)
			}
			f.Close()
			if got := d.Stats().Backwards; got != test.want {
				t.Errorf("%s, %d trackers: %+v, want %+v", test.name, trackers, got, test.want)
			}
		}
	}
	if b := (decode.Backwards{Count: 3, Most: 5, First: 7}).Since(decode.Backwards{Count: 2, Most: 5, First: 7}); b.Count != 1 || b.Most != 5 {
		t.Errorf("since then: %+v", b)
	}
	same := decode.Backwards{Count: 2, Most: 5, First: 7}
	if b := same.Since(same); b != (decode.Backwards{}) {
		t.Errorf("nothing since then: %+v", b)
	}
}
