package storetest

import (
	"bytes"

	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// maxSize is how large files become, in bytes.
const maxSize = 5 << 19

// place is an offset, more often than not near a boundary of pages or blocks.
func (m *model) place() uint64 {
	switch m.rand.IntN(4) {
	case 0:
		return uint64(m.rand.IntN(maxSize))
	case 1:
		return uint64(m.rand.IntN(3)) << 20
	}
	p := m.rand.IntN(maxSize>>12)<<12 + m.rand.IntN(5) - 2
	return uint64(max(p, 0))
}

func (m *model) length() uint64 {
	switch m.rand.IntN(5) {
	case 0:
		return 1 << 20
	case 1:
		return uint64(m.rand.IntN(1 << 20))
	case 2:
		return uint64(1+m.rand.IntN(20)) << 12
	}
	return uint64(m.rand.IntN(9000))
}

// span is a range that ends before maxSize.
func (m *model) span() (uint64, uint64) {
	a, n := m.place(), m.length()
	a = min(a, maxSize)
	return a, min(n, maxSize-a)
}

// data returns the expected error of an operation on the data of n.
func (m *model) data(n *node) store.Error {
	switch {
	case n.links == 0:
		return store.ErrStale
	case n.kind == store.Directory:
		return store.ErrIsDir
	case n.kind != store.Regular:
		return store.ErrWrongType
	}
	return 0
}

func (n *node) grow(size uint64) {
	if uint64(len(n.data)) < size {
		n.data = append(n.data, make([]byte, size-uint64(len(n.data)))...)
	}
}

func (m *model) write() {
	n := m.file()
	offset, length := m.span()
	data := make([]byte, length)
	for i := range data {
		data[i] = byte(1 + m.rand.Uint32()%255)
		if i&63 == 63 {
			copy(data[i+1:], data[:i+1]) // fast enough, and not all the same
			break
		}
	}
	for done := 64; done < len(data); done *= 2 {
		copy(data[done:], data[:done])
	}
	m.logf("write %v %d+%d", n.handle, offset, length)
	var w store.Wcc
	if !m.want(m.store.Write(m.cred(), n.handle, offset, data, m.rand.IntN(2) == 0, &w), m.data(n)) || length == 0 {
		return
	}
	m.wcc(n, &w)
	n.grow(offset + length)
	copy(n.data[offset:], data)
}

func (m *model) read() {
	n := m.file()
	offset, length := m.place(), m.length()
	m.logf("read %v %d+%d", n.handle, offset, length)
	m.readAll(n, offset, uint32(length))
}

func (m *model) readAll(n *node, offset uint64, length uint32) {
	m.Helper()
	var r store.ReadResult
	defer r.Release()
	if !m.want(m.store.Read(m.cred(), n.handle, offset, length, &r), m.data(n)) {
		return
	}
	size := uint64(len(n.data))
	start := min(offset, size)
	end := min(start+uint64(length), size)
	if !bytes.Equal(r.Data, n.data[start:end]) {
		at := 0
		for at < min(len(r.Data), int(end-start)) && r.Data[at] == n.data[int(start)+at] {
			at++
		}
		m.Errorf("%d bytes of %d, different from %d on", len(r.Data), end-start, int(start)+at)
	}
	if eof := end == size; r.EOF != eof {
		m.Errorf("eof %v, want %v", r.EOF, eof)
	}
	m.checkAttr(n, &r.Attr)
}

func (m *model) truncate() {
	n := m.file()
	size := m.place()
	m.logf("truncate %v %d", n.handle, size)
	want := m.data(n)
	if want == store.ErrWrongType {
		want = store.ErrInval
	}
	var w store.Wcc
	if !m.want(m.store.SetAttr(m.cred(), n.handle, &store.SetAttr{Mask: store.SetSize, Size: size}, &w), want) {
		return
	}
	m.wcc(n, &w)
	n.grow(size)
	n.data = n.data[:size]
}

func (m *model) seek() {
	n := m.file()
	if m.data(n) != 0 {
		return
	}
	offset := m.place()
	m.logf("seek %v %d", n.handle, offset)
	size := uint64(len(n.data))
	for offset < size {
		data, err := m.store.Seek(m.cred(), n.handle, offset, store.SeekData)
		if err == store.ErrNXIO {
			data, err = size, nil
		}
		if !m.want(err, 0) {
			return
		}
		if data < offset || data > size || !Zero(n.data[offset:data]) {
			m.Errorf("[%d, %d) is not a hole; size %d", offset, data, size)
			return
		}
		if data == size {
			break
		}
		hole, err := m.store.Seek(m.cred(), n.handle, data, store.SeekHole)
		if !m.want(err, 0) {
			return
		}
		if hole <= data || hole > size {
			m.Errorf("data from %d to %d; size %d", data, hole, size)
			return
		}
		offset = hole
	}
	_, err := m.store.Seek(m.cred(), n.handle, size, store.SeekHole)
	m.want(err, store.ErrNXIO)
}

func (m *model) allocate() {
	n := m.file()
	offset, length := m.span()
	if m.data(n) != 0 || length == 0 {
		return
	}
	m.logf("allocate %v %d+%d", n.handle, offset, length)
	var w store.Wcc
	if err := m.store.Allocate(m.cred(), n.handle, offset, length, &w); err != store.ErrNotSupp && m.want(err, 0) {
		m.wcc(n, &w)
		n.grow(offset + length)
	}
}

func (m *model) deallocate() {
	n := m.file()
	offset, length := m.span()
	if m.data(n) != 0 || length == 0 {
		return
	}
	m.logf("deallocate %v %d+%d", n.handle, offset, length)
	var w store.Wcc
	if err := m.store.Deallocate(m.cred(), n.handle, offset, length, &w); err != store.ErrNotSupp && m.want(err, 0) {
		m.wcc(n, &w)
		size := uint64(len(n.data))
		clear(n.data[min(offset, size):min(offset+length, size)])
	}
}

// copied does to the model what Copy and Clone do.
func copied(src *node, from uint64, dst *node, to, length uint64) {
	if length == 0 {
		return
	}
	part := bytes.Clone(src.data[from : from+length])
	dst.grow(to + length)
	copy(dst.data[to:], part)
}

func (m *model) copy() {
	src, dst := m.file(), m.file()
	from, length := m.span()
	to := m.place()
	if m.data(src) != 0 || m.data(dst) != 0 {
		return
	}
	if m.rand.IntN(2) == 0 {
		to = to&^4095 + from&4095
	}
	m.logf("copy %v %d+%d to %v %d", src.handle, from, length, dst.handle, to)
	want := store.Error(0)
	size := uint64(len(src.data))
	have := length
	if from > size {
		want = store.ErrInval
	} else if have == 0 || have > size-from {
		have = size - from
	}
	if want == 0 && src == dst && from < to+have && to < from+have {
		want = store.ErrInval
	}
	var w store.Wcc
	done, err := m.store.Copy(m.cred(), src.handle, from, dst.handle, to, length, &w)
	if !m.want(err, want) {
		return
	}
	if done != have {
		m.Errorf("%d bytes copied, want %d", done, have)
		return
	}
	if have > 0 {
		m.wcc(dst, &w)
	}
	copied(src, from, dst, to, have)
}

func (m *model) clone() {
	src, dst := m.file(), m.file()
	align := m.info.CloneAlign
	if m.data(src) != 0 || m.data(dst) != 0 || align == 0 {
		return
	}
	from, to := uint64(m.rand.IntN(2))*align, uint64(m.rand.IntN(3))*align
	size := uint64(len(src.data))
	length := uint64(m.rand.IntN(2)) * align
	if from > size || length > size-from {
		return
	}
	have := length
	if have == 0 {
		have = size - from
	}
	m.logf("clone %v %d+%d to %v %d", src.handle, from, length, dst.handle, to)
	want := store.Error(0)
	if src == dst && from < to+have && to < from+have {
		want = store.ErrInval
	}
	var w store.Wcc
	// Whether there are clones depends on the file system below.
	if err := m.store.Clone(m.cred(), src.handle, from, dst.handle, to, length, &w); err != store.ErrNotSupp && m.want(err, want) {
		copied(src, from, dst, to, have)
		if have > 0 {
			m.wcc(dst, &w)
		}
	}
}
