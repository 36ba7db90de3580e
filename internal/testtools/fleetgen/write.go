package fleetgen

import (
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rpcrdma/toolkit/capture"
)

// Options say what is made.
type Options struct {
	First  int // number of the first tap
	Taps   int
	Slices int // files of each tap
	// Repeat is how often the captures follow one another at a tap, each time of other hosts; 0 stands for 1.
	Repeat int
	Seed   uint64 // of the order of the captures at each tap
	Plain  bool   // pcapng only, not compressed
	// Gap is between one capture and the next at a tap; 0 stands for a second.
	Gap time.Duration
}

// Write makes files dir/tap-N/cap-NNN.pcapng and the like. The captures follow one another at each tap, in another
// order. Files are pcap and pcapng in turn, if the captures have one link type and one capture point each; some are
// compressed.
func Write(dir string, captures []string, opt Options) error {
	opt.Repeat = max(opt.Repeat, 1)
	opt.Gap = cmp.Or(opt.Gap, time.Second)
	switch n := (opt.First + opt.Taps) * opt.Repeat * len(captures); {
	case opt.First < 0 || opt.Taps < 1 || opt.Slices < 1 || len(captures) == 0:
		return errors.New("there must be taps, files and captures")
	case n > 1<<16:
		return fmt.Errorf("%d captures in all need more addresses than there are", n)
	}
	total, mixed, err := look(captures)
	if err != nil {
		return err
	}
	for tap := opt.First; tap < opt.First+opt.Taps; tap++ {
		x := &tapWriter{opt: &opt, dir: filepath.Join(dir, fmt.Sprintf("tap-%d", tap)), tap: tap, mixed: mixed, total: total * opt.Repeat}
		if err := x.run(captures); err != nil {
			return fmt.Errorf("%s: %w", x.dir, err)
		}
	}
	return nil
}

// look counts packets, and reports whether there are several link types, or a capture of several capture points: a
// packet that two of them saw is no packet that was sent twice, and pcap could not tell.
func look(captures []string) (packets int, mixed bool, err error) {
	var link capture.LinkType
	for _, name := range captures {
		err := each(name, func(p *capture.Packet) error {
			if packets > 0 && p.Link != link || p.Tap > 0 {
				mixed = true
			}
			link = p.Link
			packets++
			return nil
		})
		if err != nil {
			return 0, false, err
		}
	}
	return packets, mixed, nil
}

// each calls f for each packet of a capture. Damage at its end is no error.
func each(name string, f func(*capture.Packet) error) error {
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		return err
	}
	defer r.Close()
	var b capture.Batch
	for {
		if err := r.Read(&b); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		for i := range b.Packets {
			if err := f(&b.Packets[i]); err != nil {
				return err
			}
		}
	}
}

// tapWriter writes the files of a tap.
type tapWriter struct {
	opt          *Options
	dir          string
	tap          int
	mixed        bool
	total, n     int // packets
	slice        int
	w            *capture.Writer
	close        func() error
	offset, last int64 // of times
	data         []byte
}

func (x *tapWriter) run(captures []string) (err error) {
	if err := os.MkdirAll(x.dir, 0o777); err != nil {
		return err
	}
	defer func() {
		if x.close != nil {
			err = errors.Join(err, x.close())
		}
	}()
	random := rand.New(rand.NewPCG(x.opt.Seed, uint64(x.tap)))
	for repeat := range x.opt.Repeat {
		for _, i := range random.Perm(len(captures)) {
			if err := x.capture(captures[i], (x.tap*x.opt.Repeat+repeat)*len(captures)+i); err != nil {
				return err
			}
		}
	}
	return nil
}

// capture adds a capture, of hosts of its own.
func (x *tapWriter) capture(name string, n int) error {
	r := NewRewriter(n)
	begun, last := false, int64(math.MinInt64)
	err := each(name, func(p *capture.Packet) error {
		if !begun {
			begun = true
			if x.last != 0 {
				x.offset = x.last + int64(x.opt.Gap) - p.Time
			}
		}
		q := *p
		x.data = append(x.data[:0], p.Data...)
		q.Data, q.Time = x.data, p.Time+x.offset
		last = max(last, q.Time)
		r.Packet(&q)
		return x.write(&q)
	})
	if begun {
		x.last = max(x.last, last)
	}
	return err
}

func (x *tapWriter) write(p *capture.Packet) error {
	if x.w == nil || x.slice < x.opt.Slices && x.n >= x.slice*x.total/x.opt.Slices {
		if err := x.rotate(); err != nil {
			return err
		}
	}
	x.n++
	return x.w.Write(p)
}

// rotate begins the next file.
func (x *tapWriter) rotate() error {
	if x.close != nil {
		if err := x.close(); err != nil {
			return err
		}
	}
	opt := capture.WriterOptions{}
	name := fmt.Sprintf("cap-%03d.pcapng", x.slice)
	kind := (x.tap + x.slice) % 4
	if !x.opt.Plain && !x.mixed && x.slice%2 == 1 {
		opt.Format, name = capture.Pcap, fmt.Sprintf("cap-%03d.pcap", x.slice)
	}
	switch {
	case x.opt.Plain:
		kind = 0
	case kind == 1:
		name += ".zst"
	case kind == 3:
		name += ".gz"
	}
	x.slice++
	f, err := os.Create(filepath.Join(x.dir, name))
	if err != nil {
		return err
	}
	var out io.Writer = f
	end := func() error { return nil }
	switch kind {
	case 1:
		z, err := zstd.NewWriter(f, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return errors.Join(err, f.Close())
		}
		out, end = z, z.Close
	case 3:
		z := gzip.NewWriter(f)
		out, end = z, z.Close
	}
	x.w = capture.NewWriter(out, opt)
	w := x.w
	x.close = func() error { return errors.Join(w.Flush(), end(), f.Close()) }
	return nil
}
