package decode_test

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// withProcs runs a test with several numbers of processors, which need not be there, and of trackers; 0 is one for all.
func withProcs(t *testing.T, test func(t *testing.T, trackers int)) {
	for _, procs := range []int{1, 2, 3, 8} {
		for _, trackers := range []int{0, 1, 3} {
			t.Run(fmt.Sprint(procs, " processors ", trackers, " trackers"), func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				test(t, trackers)
			})
		}
	}
}

// stalling hands out packets one at a time, and none after some number of them until it is told to go on.
type stalling struct {
	packets []capture.Packet
	at      int // where it stalls
	goOn    chan struct{}
	stalled func()
	next    int
}

func (r *stalling) Read(b *capture.Batch) error {
	if r.next == r.at {
		r.stalled()
		<-r.goOn
	}
	b.Reset()
	if r.next == len(r.packets) {
		return io.EOF
	}
	b.Append(r.packets[r.next])
	r.next++
	return nil
}

func (*stalling) Problems() ([]*capture.Problem, int) { return nil, 0 }
func (*stalling) Close() error                        { return nil }

// TestStall: while an input has nothing more, all transactions that have ended are shown, although no list of
// them is full.
func TestStall(t *testing.T) {
	packets := sample(t, "rocev2-nfs3-basic.pcap.zst", 0)
	opt := decode.Options{Transactions: transaction.Options{OnCompletion: true}}
	for _, at := range []int{len(packets) / 3, len(packets)} {
		withProcs(t, func(t *testing.T, trackers int) {
			want := 0
			d := decode.New(opt, func(*transaction.Transaction) { want++ })
			var b capture.Batch
			for _, p := range packets[:at] {
				b.Append(p)
			}
			d.Batch(&b)
			if want == 0 || want%16 == 0 {
				t.Fatalf("%d transactions before the stall do not show anything", want)
			}

			opt := opt
			opt.Concurrent, opt.Trackers = true, trackers
			r := &stalling{packets: packets, at: at, goOn: make(chan struct{}), stalled: func() {}}
			shown := 0
			d = decode.New(opt, func(*transaction.Transaction) {
				if shown++; shown == want {
					close(r.goOn)
				}
			})
			go func() {
				select {
				case <-r.goOn:
				case <-time.After(5 * time.Minute):
					panic("transactions were not shown while the input stalled")
				}
			}()
			if err := d.Run(r); err != nil || shown < want {
				t.Errorf("%d transactions, %v", shown, err)
			}
		})
	}
}

// TestConsumers: whoever consumes, one does at a time, and in order; also if the consumer is slow, or ends the run.
func TestConsumers(t *testing.T) {
	packets := sample(t, "rocev2-nfs3-meta.pcap.zst", 0)
	var want []uint64
	decodedWith(packets, decode.Options{}, func(tx *transaction.Transaction) { want = append(want, tx.Serial()) })
	for _, stop := range []int{0, 1, 100} {
		for _, slow := range []int{0, 2000} {
			t.Run(fmt.Sprint("stop ", stop, " slow ", slow), func(t *testing.T) {
				withProcs(t, func(t *testing.T, trackers int) {
					var inside atomic.Int32
					var got []uint64
					var d *decode.Decoder
					d = decode.New(decode.Options{Concurrent: true, Trackers: trackers}, func(tx *transaction.Transaction) {
						if inside.Add(1) != 1 {
							t.Error("two consume at the same time")
						}
						got = append(got, tx.Serial())
						for range slow {
							inside.Load()
						}
						if len(got) == stop {
							d.Stop()
						}
						inside.Add(-1)
					})
					if err := d.Run(&stalling{packets: packets, at: -1}); err != nil {
						t.Fatal(err)
					}
					n := len(want)
					if stop > 0 {
						n = stop // what comes after that depends on who has been how far
					}
					if len(got) < n || stop == 0 && len(got) > n || !slices.Equal(got[:n], want[:n]) {
						t.Errorf("%d transactions of %d, or in another order", len(got), n)
					}
				})
			})
		}
	}
}
