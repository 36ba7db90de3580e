package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

// Options say how inputs are read. The zero value is ready for use.
type Options struct {
	// Stdin is read for the name "-"; nil means os.Stdin. It is not closed.
	Stdin io.Reader
	// MaxRecord is the length in bytes of the longest record that is read; a longer one counts as damage. 0
	// means 16 MiB; the maximum is 1 GiB. Memory grows as the bytes of a record arrive, whatever its length
	// field says.
	MaxRecord int
	// BatchSize is how many bytes a batch holds, if no single record is
	// longer. 0 means 256 KiB.
	BatchSize int
	// Window is how many bytes zstd may look back, which its decompressor keeps; more counts as damage. 0 means
	// 128 MiB. Beside it, and for gzip, a compressed file takes less than 3 MiB.
	Window int
	// First is how many packets precede the input: Packet.Number of the first one is First+1. For a capture
	// that continues another one.
	First uint64
	// Same reports whether two files show the same packets. One does then not take over the lane of the other, although it begins when
	// that has ended: they are of two capture points, whose clocks differ. Without Same, no two files do.
	Same func(a, b string) bool
}

const (
	defaultMaxRecord = 16 << 20
	greatestRecord   = 1 << 30
	defaultBatchSize = 256 << 10
	leastBatchSize   = 64 // holds any header
	peekSize         = 4 << 10
)

func (o *Options) limits() limits {
	l := limits{batch: o.BatchSize, maxRecord: o.MaxRecord, window: o.Window, same: o.Same}
	if l.window <= 0 {
		l.window = maxWindow
	}
	l.window = max(l.window, zstd.MinWindowSize)
	if l.batch <= 0 {
		l.batch = defaultBatchSize
	}
	if l.maxRecord <= 0 {
		l.maxRecord = defaultMaxRecord
	}
	l.maxRecord = min(l.maxRecord, greatestRecord)
	l.batch = max(l.batch, leastBatchSize)
	return l
}

func (o *Options) stdin() io.Reader {
	if o.Stdin != nil {
		return o.Stdin
	}
	return os.Stdin
}

// Tapper is a Reader that knows where its packets were captured. Readers that
// Open and NewReader return are Tappers.
type Tapper interface {
	// Taps describes the taps seen so far; Packet.Tap is an index in it. It
	// may be called while another goroutine reads, and must not be changed.
	Taps() []Tap
}

// Progresser is a Reader of inputs whose size may be known. Readers that Open
// and NewReader return are Progressers.
type Progresser interface {
	// Progress returns how many bytes of the inputs were read, as they are stored (compressed), and how many
	// there are; total is 0 if unknown. It may be called while another goroutine reads.
	Progress() (done, total int64)
}

// Tap is a place where packets were captured.
type Tap struct {
	// File is the name of the input; of the first one, if several follow
	// each other in time and so share a lane.
	File string
	// Lane tells captures apart that overlap in time: 0, 1, …
	Lane int
	// Interface is the index of the interface in its pcapng section; 0 for
	// pcap.
	Interface int
	// Name and Description of the interface, as in the file; often empty.
	Name, Description string
	Link              LinkType
	// SnapLen is the length in bytes at which the capture cut packets, as in
	// the file; 0 means that it did not.
	SnapLen uint32
}

// Open opens captures by name; "-" is standard input. Pcap and pcapng are distinguished by content, as are
// gzip and zstd.
//
// Packets of several files come merged by time; of packets with equal times those of the file named first
// come first. A file that is not in order within itself is passed as it is. Packet.Number counts the merged
// packets.
//
// Packet.Tap numbers lanes and interfaces. A file whose first packet comes after another file has ended takes
// over the lane of that file, the lowest free lane first: a series of rotated files is one lane, captures
// that overlap have one each. See also Options.Same. In a lane, the interfaces with the same index in a section are one tap.
//
// A file that is not a capture is an error (*FormatError). So is one without any byte, but only if no other
// file was named: rotation leaves such files, so that among others it is a Problem. The Reader is also a
// Tapper and a Progresser.
func Open(names []string, opts Options) (Reader, error) {
	if len(names) == 0 {
		return nil, errors.New("no input named")
	}
	r := &files{lim: opts.limits(), stdin: opts.stdin(), inputs: make([]*input, len(names)), first: opts.First, number: opts.First}
	std := 0
	for i, name := range names {
		r.inputs[i] = &input{index: i, name: name, lane: -1}
		if name == "-" {
			std++
		}
	}
	if std > 1 {
		return nil, errors.New("standard input (-) named more than once")
	}
	if len(names) == 1 {
		in := r.inputs[0]
		var err error
		if in.file, err = openFile(in.name, r.stdin, r.lim, &r.problems, &in.consumed); err != nil {
			return nil, err
		}
		in.size = in.file.size
		r.single = in
		return r, nil
	}
	if err := r.openAll(); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// NewReader reads one capture from r, which may be compressed. Name is used in problems. If r is not a
// regular file, each Read takes what is there rather than wait for a full
// batch. Closing the Reader does not close r.
func NewReader(r io.Reader, name string, opts Options) (Reader, error) {
	in := &input{name: name, lane: -1}
	fs := &files{lim: opts.limits(), inputs: []*input{in}, single: in, first: opts.First}
	src, err := newSource(r, waits(r), fs.lim.window, &in.consumed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	in.file, err = newFile(name, src, sizeOf(r), fs.lim, &fs.problems)
	if err != nil {
		return nil, err
	}
	in.size = in.file.size
	return fs, nil
}

// files is the Reader of one or several inputs.
type files struct {
	lim      limits
	stdin    io.Reader
	inputs   []*input // as named
	single   *input   // the only input, or nil
	problems problems
	taps     taps

	queue  []*input // a heap: inputs that have packets, the next one first
	number uint64   // of packets merged so far
	first  uint64   // packets before the first
	err    error    // sticky
}

// input is one of the files.
type input struct {
	index    int
	name     string
	file     *file // nil if not open now
	size     int64
	consumed atomic.Int64

	// Of the merge:
	batch Batch
	next  int   // index in batch of the next packet
	time  int64 // of the next packet
	lane  int   // -1 before the first packet came out
}

func (r *files) Read(b *Batch) error {
	if r.err != nil {
		b.Packets = b.Packets[:0]
		return r.err
	}
	var err error
	if in := r.single; in != nil {
		if err = in.file.fill(b); err == nil {
			// Numbers and interface indexes of the file are the same as those of the
			// input.
			r.taps.note(in, 0, in.file.dec.highest())
			if r.first > 0 {
				for i := range b.Packets {
					b.Packets[i].Number += r.first
				}
			}
		}
	} else {
		err = r.merge(b)
	}
	if err != nil {
		r.err = err
	}
	return err
}

func (r *files) Problems() ([]*Problem, int) { return r.problems.get() }

func (r *files) Taps() []Tap { return r.taps.get() }

func (r *files) Progress() (done, total int64) {
	known := true
	for _, in := range r.inputs {
		n := in.consumed.Load()
		if in.size < 0 {
			known = false
		} else {
			n = min(n, in.size)
			total += in.size
		}
		done += n
	}
	if !known {
		total = 0
	}
	return done, total
}

// Close closes the files. Read fails from then on. It must not be called
// during a Read.
func (r *files) Close() error {
	var first error
	for _, in := range r.inputs {
		if err := in.close(); err != nil && first == nil {
			first = err
		}
	}
	if r.err == nil {
		r.err = os.ErrClosed
	}
	return first
}

func (in *input) close() error {
	if in.file == nil {
		return nil
	}
	err := in.file.Close()
	in.file = nil
	in.batch = Batch{}
	return err
}
