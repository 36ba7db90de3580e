package rotate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
)

var first = time.Date(2026, 11, 21, 5, 59, 50, 0, time.UTC)

// packet i comes i seconds after the first, and has 100 bytes.
func packet(i int) *capture.Packet {
	return &capture.Packet{Time: first.Add(time.Duration(i) * time.Second).UnixNano(), Link: 1, Length: 100, Data: bytes.Repeat([]byte{byte(i)}, 100)}
}

// series writes n packets and says which are in which file.
func series(t *testing.T, opt Options, times ...int) string {
	t.Helper()
	dir := t.TempDir()
	opt.Name = filepath.Join(dir, opt.Name)
	opt.Location = time.UTC
	w, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range times {
		if err := w.Write(packet(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Flush(), w.Close()); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name()+contents(t, filepath.Join(dir, e.Name())))
	}
	if opt.Keep == 0 {
		if n := w.Count().Files; n != len(list) {
			t.Errorf("%d files counted, %d there", n, len(list))
		}
	}
	return strings.Join(out, " ")
}

func contents(t *testing.T, name string) string {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := ""
	var b capture.Batch
	for {
		err := r.Read(&b)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range b.Packets {
			s += fmt.Sprintf(",%d", p.Data[0])
		}
	}
	if _, n := r.Problems(); n > 0 {
		t.Errorf("%s: %d problems", name, n)
	}
	return strings.Replace("["+s+"]", "[,", "[", 1)
}

func TestSeries(t *testing.T) {
	six := []int{0, 1, 2, 3, 4, 5}
	for _, c := range []struct {
		opt   Options
		times []int
		want  string
	}{
		{Options{Name: "a.pcapng"}, six, "a.pcapng[0,1,2,3,4,5]"},
		{Options{Name: "a.pcap"}, nil, "a.pcap[]"},
		{Options{Name: "a"}, six[:1], "a[0]"},
		{Options{Name: "a.pcap.gz"}, six[:2], "a.pcap.gz[0,1]"},
		{Options{Name: "a.pcapng.zst"}, six[:2], "a.pcapng.zst[0,1]"},
		// 24 bytes, and 16 + 100 for each packet
		{Options{Name: "a.pcap", Size: 24 + 2*116 + 20}, six, "a-00001.pcap[0,1] a-00002.pcap[2,3] a-00003.pcap[4,5]"},
		{Options{Name: "a.pcap", Size: 1}, six[:3], "a-00001.pcap[0] a-00002.pcap[1] a-00003.pcap[2]"},
		{Options{Name: "a.pcap.gz", Size: 300, Keep: 2}, six, "a-00002.pcap.gz[2,3] a-00003.pcap.gz[4,5]"},
		{Options{Name: "a.pcapng", Every: 2e9}, six, "a-00001.pcapng[0,1] a-00002.pcapng[2,3] a-00003.pcapng[4,5]"},
		{Options{Name: "a.pcapng", Every: 10e9}, []int{0, 9, 10, 55, 59, 60}, "a-00001.pcapng[0,9] a-00002.pcapng[10] a-00003.pcapng[55,59] a-00004.pcapng[60]"},
		{Options{Name: "a.pcap", Every: 2e9}, []int{100, 101, 102, 101, 0, 1, 2, 100}, "a-00001.pcap[100,101] a-00002.pcap[102,101] a-00003.pcap[0,1] a-00004.pcap[2] a-00005.pcap[100]"},
		{Options{Name: "a-%H%M%S.pcapng", Every: 10e9}, []int{0, 9, 10, 55}, "a-055950.pcapng[0,9] a-060000.pcapng[10] a-060045.pcapng[55]"},
		{Options{Name: "%F %j%%.pcapng", Every: 2e9}, six[:5], "2026-11-21 325%-00002.pcapng[2,3] 2026-11-21 325%-00003.pcapng[4] 2026-11-21 325%.pcapng[0,1]"},
		{Options{Name: "%H.pcapng", Every: 2e9, Keep: 1}, six, "05.pcapng[4,5]"}, // names of files that are gone are free,
		{Options{Name: "a%H.pcap", Size: 1}, six[:1], "a%H-00001.pcap[0]"},
		{Options{Name: "a.pcap", Every: 3e9, Size: 300}, six, "a-00001.pcap[0,1] a-00002.pcap[2] a-00003.pcap[3,4] a-00004.pcap[5]"},
		{Options{Name: "a.pcap", Every: 3e9}, nil, "a-00001.pcap[]"},
	} {
		if got := series(t, c.opt, c.times...); got != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.opt, got, c.want)
		}
	}
}

func TestStdout(t *testing.T) {
	var out bytes.Buffer
	w, err := New(Options{Name: "-", Stdout: &out})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(packet(1)), w.Flush()); err != nil || out.Len() == 0 {
		t.Errorf("%v, %d bytes", err, out.Len())
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if n := w.Count(); n.Files != 1 || n.Bytes != int64(out.Len()) {
		t.Error(n, n.Bytes, out.Len())
	}
	if err := w.Write(packet(2)); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

func TestStatistics(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.pcapng")
	w, err := New(Options{Name: name, Statistics: func() []Statistics {
		return []Statistics{{Tap: 1, Link: 1, Statistics: capture.Statistics{Time: 5, Received: 7, Dropped: 2}}}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(packet(1)), w.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(name)
	if err != nil || contents(t, name) != "[1]" || !bytes.Contains(b, []byte("\x07\x00\x08\x00\x02\x00\x00\x00\x00\x00\x00\x00")) {
		t.Errorf("%v % x", err, b)
	}
}

func TestErrors(t *testing.T) {
	dir := t.TempDir()
	for want, opt := range map[string]Options{
		"no file to write":       {},
		"needs a size or a time": {Name: "a", Keep: 3},
		"cannot be rotated":      {Name: "-", Size: 5},
		"%Q is not known":        {Name: "a%Q", Every: 5},
		"nothing follows":        {Name: "a%", Every: 5},
		"not negative":           {Name: "a", Size: -1},
		"no such file":           {Name: filepath.Join(dir, "no", "a.pcap")},
	} {
		if _, err := New(opt); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	w, err := New(Options{Name: filepath.Join(dir, "no", "a.pcap"), Size: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(packet(1)); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := w.Close(); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// limited takes so many bytes, and fails then.
type limited struct {
	bytes.Buffer
	most int
}

func (l *limited) Write(b []byte) (int, error) {
	n, _ := l.Buffer.Write(b[:min(len(b), l.most-l.Len())])
	if n < len(b) {
		return n, errors.New("full")
	}
	return n, nil
}

// A compressed capture has frames, or members, that can be read whatever happens behind them.
func TestFrames(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 64<<10)
	for _, name := range []string{"a.pcapng.zst", "a.pcap.gz"} {
		for _, most := range []int{1 << 30, 6 << 20, 1000} {
			l := &limited{most: most}
			w, err := New(Options{Name: filepath.Join(t.TempDir(), name)})
			if err != nil {
				t.Fatal(err)
			}
			file := w.file.out.Writer
			w.file.out.Writer = io.MultiWriter(l, file) // the file gets nothing of a write that fails
			for i := range 160 {
				for j := range data {
					data[j] = byte(rnd.Uint32())
				}
				p := packet(i)
				p.Data, p.Length = data, uint32(len(data))
				if w.Write(p) != nil {
					break
				}
			}
			err = w.Close()
			n := w.Count()
			got := uint64(0)
			if n.Packets > 0 {
				got = uint64(strings.Count(contents(t, w.opt.Name), ",") + 1)
			}
			switch {
			case most == 1<<30 && (err != nil || n.Packets != 160 || got != 160):
				t.Errorf("%s: %v, %+v, %d packets", name, err, n, got)
			case most == 6<<20 && (err == nil || n.Packets < 60 || n.Packets >= 128 || got != n.Packets):
				t.Errorf("%s: %v, %+v, %d packets", name, err, n, got)
			case most == 1000 && (err == nil || n.Packets != 0):
				t.Errorf("%s: %v, %+v", name, err, n)
			}
		}
	}
}
