package capture

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Place is where the reading of a file stands between two batches: OpenAt goes on there, with the same batches and the
// same packets as if it had read what precedes. It consists of plain values, so that it can be kept in another file.
type Place struct {
	Offset  int64        // of the first byte that has not been decoded
	Carried int          // bytes behind it that have been read
	Packets uint64       // before it
	Time    int64        // of the last one, ns since 1970
	Mean    int          // size in bytes of the records in the last batch
	Pcap    *PcapPlace   `json:",omitempty"`
	Pcapng  *PcapngPlace `json:",omitempty"`
}

// PcapPlace is what is known of a pcap file beside its header.
type PcapPlace struct {
	Second uint32 // of the last packet whose time is believed
	Known  bool   // there is one
}

// PcapngPlace is what a pcapng file has said so far.
type PcapngPlace struct {
	Big        bool // byte order of the section
	Interfaces []PcapngInterface
	Known      []Tap // by number, of all sections
	Top        int   // highest number of an interface with packets
}

// PcapngInterface is an interface of the section.
type PcapngInterface struct {
	Multiplier, Divisor uint64
	Shift               uint8
	Offset              int64
	SnapLen             uint32
	Link                LinkType
	FCS                 uint8
	Bad                 bool
}

// Placer is a Reader that can tell where it stands. Readers that Open returns are Placers.
type Placer interface {
	// Place is where the next Read begins. It returns false for anything but a single regular file that is not
	// compressed, within damage, before the first Read, and at the end.
	Place() (Place, bool)
}

// Place implements Placer.
func (r *files) Place() (p Place, ok bool) {
	if r.single == nil || r.single.file == nil || r.err != nil {
		return p, false
	}
	f := r.single.file
	if f.ended || f.mean == 0 || f.src.kind != "" || f.src.waits || f.src.ahead != nil {
		return p, false
	}
	p = Place{Offset: f.base, Carried: len(f.carry), Packets: f.count, Time: f.last, Mean: f.mean}
	return p, f.dec.place(&p)
}

func (d *pcapDecoder) place(p *Place) bool {
	p.Pcap = &PcapPlace{Second: d.lastSec, Known: d.haveLast}
	return d.started && !d.hunt.on
}

func (d *ngDecoder) place(p *Place) bool {
	if d.hunt.on || !d.inSection {
		return false
	}
	n := &PcapngPlace{Big: d.big, Known: append([]Tap(nil), d.known...), Top: d.top}
	for _, i := range d.list {
		n.Interfaces = append(n.Interfaces, PcapngInterface{
			Multiplier: i.clock.mul, Divisor: i.clock.div, Shift: i.clock.shift, Offset: i.clock.offset,
			SnapLen: i.snap, Link: i.link, FCS: i.fcs, Bad: i.bad,
		})
	}
	p.Pcapng = n
	return true
}

// errPlace means that a Place is not one of the file.
var errPlace = errors.New("not a place in this file")

// OpenAt opens a file at a Place. It checks the place as far as memory and indexes depend on it, not whether it was made from
// the same file: that is for the caller.
func OpenAt(name string, at Place, opts Options) (Reader, error) {
	in := &input{name: name, lane: -1}
	r := &files{lim: opts.limits(), inputs: []*input{in}, single: in, first: opts.First}
	var ignored problems // of the header; those who know the place know them
	f, err := openFile(name, nil, r.lim, &ignored, &in.consumed)
	if err != nil {
		return nil, err
	}
	if err := f.seek(&at); err != nil {
		f.Close()
		return nil, named(name, err)
	}
	f.probs = &r.problems
	in.file, in.size = f, f.size
	return r, nil
}

// seek continues at a place of a file whose first bytes have been read.
func (f *file) seek(at *Place) error {
	file, ok := f.src.closer.(*os.File)
	switch {
	case !ok || f.src.kind != "" || f.src.waits || f.src.ahead != nil,
		at.Offset < int64(len(f.carry)) || at.Offset > f.size, at.Carried < 0 || at.Mean < 1,
		int64(at.Carried) > f.size-at.Offset, at.Carried > 4*(f.lim.maxRecord+f.lim.batch):
		return errPlace
	}
	if err := f.dec.goOn(f, file, at); err != nil {
		return err
	}
	if _, err := file.Seek(at.Offset, io.SeekStart); err != nil {
		return err
	}
	f.src.r = f.src.raw
	f.src.raw.n.Store(at.Offset)
	f.carry = make([]byte, at.Carried)
	if _, err := io.ReadFull(f.src.r, f.carry); err != nil {
		return err
	}
	f.base, f.count, f.last, f.mean = at.Offset, at.Packets, at.Time, at.Mean
	return nil
}

func (d *pcapDecoder) goOn(f *file, r io.ReaderAt, at *Place) error {
	if at.Pcap == nil || at.Offset < int64(d.header) {
		return errPlace
	}
	head := make([]byte, d.header)
	if _, err := r.ReadAt(head, 0); err != nil {
		return err
	}
	d.start(f, head)
	d.lastSec, d.haveLast = at.Pcap.Second, at.Pcap.Known
	return nil
}

func (d *ngDecoder) goOn(_ *file, _ io.ReaderAt, at *Place) error {
	n := at.Pcapng
	if n == nil || len(n.Known) > maxInterfaces || len(n.Interfaces) > len(n.Known) || n.Top < 0 || n.Top >= len(n.Known) {
		return errPlace
	}
	d.inSection, d.big, d.known, d.top = true, n.Big, n.Known, n.Top
	for _, i := range n.Interfaces {
		if i.Shift > 63 {
			return fmt.Errorf("%w: clock", errPlace)
		}
		d.list = append(d.list, iface{
			clock: clock{mul: i.Multiplier, div: i.Divisor, shift: i.Shift, offset: i.Offset},
			snap:  i.SnapLen, link: i.Link, fcs: i.FCS, bad: i.Bad,
		})
	}
	return nil
}
