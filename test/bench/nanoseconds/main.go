// Command nanoseconds tells where the processor time of rpcrdma-dump -q goes, by layer, for five kinds of traffic, and what
// the machine would need at least.
//
//	go run ./test/bench/nanoseconds [-n 20] [-dir DIR]
//
// It makes the captures, in DIR if that is given, where they are used again. Then it decodes each one several times on one
// processor, so that nothing is lost between two, with a profile. The time is the least that the kernel has counted
// (getrusage), divided by the shares of the samples of all profiles.
//
// Beside that stand the limits, measured on the same machine at the same time: what it takes to copy the file out of the
// page cache, to compute the CRCs of packets of that size, and to touch each byte once in memory.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/test/bench"
)

func main() {
	n := flag.Int("n", 20, "rounds: the profile of one has some 30 samples")
	dir := flag.String("dir", "", "keep the captures in this directory, and use those that are there")
	only := flag.String("only", "", "only the workload whose file begins with this")
	flag.Parse()
	if flag.NArg() > 0 || *n < 1 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *n, *dir, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "nanoseconds:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, rounds int, dir, only string) error {
	work, err := os.MkdirTemp("", "nanoseconds")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if dir == "" {
		dir = work
	} else if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	t, err := build(ctx, work)
	if err != nil {
		return err
	}
	var all []*measured
	for i := range workloads {
		w := &workloads[i]
		if !strings.HasPrefix(w.file, only) {
			continue
		}
		name, err := w.make(ctx, &t, dir)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		m, err := measure(ctx, &t, w, name, work, rounds)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		all = append(all, m)
	}
	report(out, all, rounds)
	return nil
}

// measured is what was found about a workload. Times are of all packets together, least of all rounds.
type measured struct {
	*workload
	packets, transactions uint64
	bytes                 int64
	spent                 time.Duration // processor time
	layers                []time.Duration
	copied, checked, seen time.Duration // the limits
}

// measure decodes a capture several times.
func measure(ctx context.Context, t *tools, w *workload, name, work string, rounds int) (*measured, error) {
	m := &measured{workload: w, layers: make([]time.Duration, len(layers))}
	if err := m.inspect(name); err != nil {
		return nil, err
	}
	for range rounds {
		profile := filepath.Join(work, "cpu.prof")
		cmd := exec.CommandContext(ctx, t.dump, "-q", "--cpuprofile", profile, name)
		cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
		var text bytes.Buffer
		cmd.Stdout, cmd.Stderr = &text, &text
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", cmd, err, text.Bytes())
		}
		keepLeast(&m.spent, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		list, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-traces", profile).Output()
		if err != nil {
			return nil, fmt.Errorf("go tool pprof: %w", err)
		}
		if err := traces(bytes.NewReader(list), m.layers); err != nil {
			return nil, err
		}
		if err := m.limits(name); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// inspect counts, which also brings the file into the page cache.
func (m *measured) inspect(name string) error {
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	d := decode.New(decode.Options{}, func(*transaction.Transaction) {})
	if err := d.Run(r); err != nil {
		return err
	}
	s := d.Stats()
	m.packets, m.transactions, m.bytes = s.Packets, s.Transactions, 0
	if m.packets == 0 || m.transactions == 0 {
		return errors.New("no transactions")
	}
	st, err := os.Stat(name)
	if err == nil {
		m.bytes = st.Size()
	}
	return err
}

// uncovered is about how many bytes of the file stand before those of a packet that its CRC is made of: the headers of a pcap record and of
// Ethernet, but for the four bytes in place of a local route header; with iWARP also those of IPv4 and of TCP with timestamps. Without Ethernet, the
// headers of pcapng are as much longer.
func (m *measured) uncovered() int {
	if m.iwarp {
		return 16 + 14 + 20 + 32
	}
	return 16 + 14 - 4
}

// memory is larger than any cache.
var memory = make([]byte, 256<<20)

// limits measures what the machine can do.
func (m *measured) limits(name string) error {
	start := time.Now()
	n, err := bench.ReadAll(name)
	if err != nil {
		return err
	}
	keepLeast(&m.copied, time.Since(start))
	if n != m.bytes {
		return fmt.Errorf("%d bytes, and %d when it was read again", m.bytes, n)
	}
	if memory[0] == 0 {
		for i := range memory {
			memory[i] = byte(i) | 1 // no page is one of zeros that all share
		}
	}
	if !m.none {
		size := max(int(uint64(m.bytes)/m.packets)-m.uncovered(), 64)
		b := memory[:max(64<<10, size)]
		start, times := time.Now(), 256
		for range times {
			runtime.KeepAlive(bench.CRC(b, size, m.iwarp)) // or the compiler may leave it out
		}
		keepLeast(&m.checked, time.Duration(float64(time.Since(start))*float64(m.packets)/float64(times*(len(b)/size))))
	}
	start = time.Now()
	runtime.KeepAlive(bench.Touch(memory))
	keepLeast(&m.seen, time.Duration(float64(time.Since(start))*float64(m.bytes)/float64(len(memory))))
	return nil
}

func keepLeast(to *time.Duration, d time.Duration) {
	if *to == 0 || d < *to {
		*to = d
	}
}

// report prints two tables.
func report(out io.Writer, all []*measured, rounds int) {
	each := func(m *measured, d time.Duration) float64 { return float64(d.Nanoseconds()) / float64(m.packets) }
	row := func(name string, f func(m *measured) string) {
		fmt.Fprintf(out, "| %s |", name)
		for _, m := range all {
			fmt.Fprintf(out, " %s |", f(m))
		}
		fmt.Fprintln(out)
	}
	number := func(f func(m *measured) time.Duration) func(m *measured) string {
		return func(m *measured) string {
			d := f(m)
			if d == 0 {
				return "–"
			}
			return fmt.Sprintf("%.1f", each(m, d))
		}
	}
	fmt.Fprintf(out, "%s, one of %d processors; least of %d rounds; nanoseconds of processor time a packet\n\n", runtime.Version(), runtime.NumCPU(), rounds)
	row("", func(m *measured) string { return m.name })
	fmt.Fprintln(out, "|-|"+strings.Repeat("-:|", len(all)))
	for i, l := range layers {
		row(l.name, func(m *measured) string {
			share := float64(m.layers[i]) / float64(max(sum(m.layers), 1))
			return fmt.Sprintf("%.1f (%.0f %%)", share*each(m, m.spent), 100*share)
		})
	}
	row("**all**", func(m *measured) string { return fmt.Sprintf("**%.1f**", each(m, m.spent)) })
	row("limit: copy from the page cache", number(func(m *measured) time.Duration { return m.copied }))
	row("limit: CRC", number(func(m *measured) time.Duration { return m.checked }))
	row("limit: memory, each byte once", number(func(m *measured) time.Duration { return m.seen }))
	row("all, × copy and CRC", func(m *measured) string { return fmt.Sprintf("%.1f", float64(m.spent)/float64(m.copied+m.checked)) })
	row("packets", func(m *measured) string { return fmt.Sprint(m.packets) })
	row("bytes a packet, in the file", func(m *measured) string { return fmt.Sprint(uint64(m.bytes) / m.packets) })
	row("packets a transaction", func(m *measured) string { return fmt.Sprintf("%.1f", float64(m.packets)/float64(m.transactions)) })
	row("packets/s, one processor", func(m *measured) string { return fmt.Sprintf("%.2f million", 1e3/each(m, m.spent)) })
}
