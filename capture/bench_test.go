package capture

import (
	"bytes"
	"fmt"
	"io"
	"testing"
)

// benchFile is a capture of about 8 MiB in packets of one size.
func benchFile(format Format, size int) ([]byte, int) {
	var b bytes.Buffer
	w := NewWriter(&b, WriterOptions{Format: format, Link: LinkEthernet})
	p := Packet{Time: 1_700_000_000e9, Link: LinkEthernet, Data: make([]byte, size), Length: uint32(size)}
	n := 8 << 20 / size
	for range n {
		p.Time += 1000
		if err := w.Write(&p); err != nil {
			panic(err)
		}
	}
	if err := w.Flush(); err != nil {
		panic(err)
	}
	return b.Bytes(), n
}

func BenchmarkRead(b *testing.B) {
	for _, format := range []Format{Pcap, Pcapng} {
		for _, size := range []int{86, 1024, 4096} {
			b.Run(fmt.Sprintf("%v-%d", format, size), func(b *testing.B) {
				in, packets := benchFile(format, size)
				b.SetBytes(int64(len(in)))
				b.ReportAllocs()
				var batch Batch
				src := bytes.NewReader(in)
				for b.Loop() {
					src.Reset(in)
					r, err := NewReader(src, "bench", Options{})
					if err != nil {
						b.Fatal(err)
					}
					n := 0
					for r.Read(&batch) == nil {
						n += len(batch.Packets)
					}
					if n != packets {
						b.Fatal(n)
					}
				}
				b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(packets), "ns/packet")
			})
		}
	}
}

// BenchmarkFile reads files, which the system has in memory.
func BenchmarkFile(b *testing.B) {
	pcap, n := benchFile(Pcap, 1024)
	for _, c := range []struct {
		name  string
		in    []byte
		files int
	}{
		{"one", pcap, 1},
		{"overlapping", pcap, 2},
		{"gzip", gz(pcap), 1},
		{"zstd", zs(pcap), 1},
	} {
		b.Run(c.name, func(b *testing.B) {
			var names []string
			for range c.files {
				names = append(names, writeFile(b, "bench", c.in))
			}
			b.SetBytes(int64(len(pcap) * c.files))
			b.ReportAllocs()
			var batch Batch
			for b.Loop() {
				r, err := Open(names, Options{})
				if err != nil {
					b.Fatal(err)
				}
				for err == nil {
					err = r.Read(&batch)
				}
				if err != io.EOF {
					b.Fatal(err)
				}
				r.Close()
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(n*c.files), "ns/packet")
		})
	}
}

// BenchmarkHunt searches garbage for records.
func BenchmarkHunt(b *testing.B) {
	for _, format := range []Format{Pcap, Pcapng} {
		b.Run(format.String(), func(b *testing.B) {
			in, _ := benchFile(format, 1024)
			const from, size = 1 << 20, 4 << 20
			for i := range size {
				in[from+i] = byte(i * i >> 3)
			}
			b.SetBytes(int64(len(in)))
			var batch Batch
			for b.Loop() {
				r, err := NewReader(bytes.NewReader(in), "bench", Options{})
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				for r.Read(&batch) == nil {
					n += len(batch.Packets)
				}
				if n < 3*len(in)/8/1100 {
					b.Fatal(n)
				}
			}
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, format := range []Format{Pcap, Pcapng} {
		b.Run(format.String(), func(b *testing.B) {
			w := NewWriter(io.Discard, WriterOptions{Format: format})
			p := Packet{Time: 1, Link: LinkEthernet, Data: make([]byte, 1024), Length: 1024}
			b.SetBytes(1024)
			b.ReportAllocs()
			for b.Loop() {
				if err := w.Write(&p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Reading a batch allocates nothing once its memory has grown, so reading a
// packet does not either.
func TestReadDoesNotAllocate(t *testing.T) {
	for _, format := range []Format{Pcap, Pcapng} {
		for _, files := range []int{1, 2} {
			in, _ := benchFile(format, 86)
			var names []string
			for range files {
				names = append(names, writeFile(t, "x", in))
			}
			r, err := Open(names, Options{})
			if err != nil {
				t.Fatal(err)
			}
			var b Batch
			read := func() {
				if err := r.Read(&b); err != nil || len(b.Packets) < batchPackets/2 {
					t.Fatal(len(b.Packets), err)
				}
			}
			read()
			read()
			read()
			if n := testing.AllocsPerRun(20, read); n != 0 {
				t.Errorf("%v, %d files: %v allocations for a batch", format, files, n)
			}
			r.Close()
		}
	}
}

func TestWriteDoesNotAllocate(t *testing.T) {
	for _, format := range []Format{Pcap, Pcapng} {
		w := NewWriter(io.Discard, WriterOptions{Format: format})
		p := Packet{Link: LinkEthernet, Data: make([]byte, 1021), Length: 1024}
		if n := testing.AllocsPerRun(1000, func() {
			if err := w.WriteComment(&p, "a comment"); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations for a packet", format, n)
		}
	}
}

// A record that claims 16 MiB costs memory only as its bytes arrive.
func TestMemoryFollowsBytes(t *testing.T) {
	in := buildPcap(pcapOpts{link: 1, snap: 16 << 20}, pcapRec{1, 0, 16 << 20, 16 << 20, make([]byte, 1000)})
	var batch Batch
	r, err := NewReader(bytes.NewReader(in), "x", Options{BatchSize: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Read(&batch); err != io.EOF {
		t.Fatal(err)
	}
	if n := cap(batch.buf); n > 4*len(in) {
		t.Errorf("buffer of %d bytes for a file of %d", n, len(in))
	}
}
