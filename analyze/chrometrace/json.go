package chrometrace

import (
	"strconv"

	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// begin writes the head of the file, once.
func (w *Writer) begin() {
	if w.began {
		return
	}
	w.began = true
	w.base = w.zero()
	var e ndjson.Encoder
	b := append(w.b[:0], `{"displayTimeUnit":"ns","otherData":{"schema":"`...)
	b = append(b, Schema...)
	b = append(b, `","base_time":"`...)
	b = e.Time(b, w.base)
	b = append(b, "\"},\"traceEvents\":[\n"...)
	w.b = b
	w.write(b)
}

// event begins an event.
func (w *Writer) event(kind byte, pid, tid int, at int64) []byte {
	b := append(w.b[:0], `{"ph":"`...)
	b = append(b, kind)
	b = append(b, `","pid":`...)
	b = strconv.AppendInt(b, int64(pid), 10)
	b = append(b, `,"tid":`...)
	b = strconv.AppendInt(b, int64(tid), 10)
	b = append(b, `,"ts":`...)
	return micros(b, int64(rdma.Between(w.base, at)))
}

// micros writes nanoseconds as microseconds with three decimals.
func micros(b []byte, ns int64) []byte {
	if ns < 0 {
		b = append(b, '-')
		ns = -ns
	}
	b = strconv.AppendInt(b, ns/1000, 10)
	f := ns % 1000
	return append(b, '.', byte('0'+f/100), byte('0'+f/10%10), byte('0'+f%10))
}

func dur(b []byte, start, end int64) []byte {
	b = append(b, `,"dur":`...)
	return micros(b, int64(max(rdma.Between(start, end), 0)))
}

func num(b []byte, key string, v uint64) []byte {
	b = append(b, ',', '"')
	b = append(b, key...)
	b = append(b, '"', ':')
	return strconv.AppendUint(b, v, 10)
}

func str(b []byte, key, v string) []byte {
	b = append(b, ',', '"')
	b = append(b, key...)
	b = append(b, '"', ':')
	return ndjson.Quote(b, v)
}

func hex8(b []byte, v uint32) []byte {
	const digits = "0123456789abcdef"
	for shift := 28; shift >= 0; shift -= 4 {
		b = append(b, digits[v>>shift&15])
	}
	return b
}

// meta and order write what a process or thread is called, and where it
// stands.
func (w *Writer) meta(pid, tid int, what, name string) {
	b := w.event('M', pid, tid, w.base)
	b = str(b, "name", what)
	b = append(b, `,"args":{"name":`...)
	b = ndjson.Quote(b, name)
	w.put(append(b, `}}`...))
}

func (w *Writer) order(pid, tid int, what string, n int) {
	b := w.event('M', pid, tid, w.base)
	b = str(b, "name", what)
	b = append(b, `,"args":{"sort_index":`...)
	b = strconv.AppendInt(b, int64(n), 10)
	w.put(append(b, `}}`...))
}

// put writes an event that event has begun.
func (w *Writer) put(b []byte) {
	w.b = b
	if w.any && w.err == nil {
		_, w.err = w.w.WriteString(",\n")
	}
	w.any = true
	w.write(b)
}

func (w *Writer) write(b []byte) {
	if w.err == nil {
		_, w.err = w.w.Write(b)
	}
}
