package truth

import (
	"bytes"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestLoadDir(t *testing.T) {
	tr := fixture(t, nil)
	if tr.Name != "small" || len(tr.Calls) != 5 || len(tr.Connections) != 2 || len(tr.Callbacks) != 1 || len(tr.Others) != 1 {
		t.Fatalf("name %q, %d calls, %d connections, %d callbacks, %d others", tr.Name, len(tr.Calls), len(tr.Connections), len(tr.Callbacks), len(tr.Others))
	}
	for _, k := range []struct{ key, want string }{{"DRIVER", "rxe"}, {"VERS", "4.1"}, {"SEC", "sys"}, {"SNAPLEN", "262144"}, {"TRACE_EVENTS", ""}} {
		if got := tr.Scenario[k.key]; got != k.want {
			t.Errorf("scenario %s is %q, want %q", k.key, got, k.want)
		}
	}
	w := tr.Calls[2].Sends[0]
	if text(w.Read) != "176+4096@300010000:12 176+905@300020000:13" || w.Aborted == nil || w.Aborted.Read != 1 || w.By != "mrd" {
		t.Errorf("WRITE after a failed attempt: %+v %+v", w, w.Aborted)
	}
	if w.CallBytes() != 5196 {
		t.Errorf("call of %d bytes, want 5196", w.CallBytes())
	}
	r := tr.Calls[4]
	if len(r.Sends) != 2 || r.Sends[0].By != "m" || r.Sends[1].By != "mrd" || r.Sends[1].Connection != 2 || !slices.Equal(r.Sends[1].Written, []uint32{200}) {
		t.Errorf("call sent again: %+v %+v", r.Sends[0], r.Sends[1])
	}
	if r.Served != "COMPOUND" || r.Procedure != "READDIR" || r.RTT != 4502 {
		t.Errorf("names %q %q, round trip %d", r.Procedure, r.Served, r.RTT)
	}
	m := tr.Mounts[0]
	if !slices.Equal(m.Clients, []string{"0", "3"}) || m.Cut != 6 || m.Ops["LOOKUP"].Errors != 1 {
		t.Errorf("mount: clients %v, cut %d, %v", m.Clients, m.Cut, m.Ops)
	}
	if tr.Nfsd.V4["COMPOUND"] != 4 || tr.Nfsd.V4["NULL"] != 1 || tr.Nfsd.V4Ops["SEQUENCE"] != 4 || tr.Nfsd.RPCs != 5 {
		t.Errorf("nfsd: %+v", tr.Nfsd)
	}
	if !slices.Equal(tr.Reshaped, []string{"d/small"}) {
		t.Errorf("reshaped %q", tr.Reshaped)
	}
	if len(tr.Files) != 2 || tr.Files[0].Path != "d/hello" || len(tr.Logged) != 1 {
		t.Errorf("files %v, logged %v", tr.Files, tr.Logged)
	}
}

func TestCompactForm(t *testing.T) {
	want := fixture(t, nil)
	var b bytes.Buffer
	if _, err := want.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	got, err := Read(bytes.NewReader(b.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(want.Calls, got.Calls) || !reflect.DeepEqual(want.Mounts, got.Mounts) {
		t.Errorf("read back:\n%+v\nwritten:\n%+v", got, want)
	}
	var again bytes.Buffer
	if _, err := got.WriteTo(&again); err != nil {
		t.Fatal(err)
	}
	if again.String() != b.String() {
		t.Errorf("written again:\n%s\nwritten first:\n%s", &again, &b)
	}
}

func TestReadRejects(t *testing.T) {
	for _, text := range []string{"", "{}", `{"schema":"rpcrdma.truth/2"}`, `{"schema":"rpcrdma.truth/1","calls":[{"xid":"1"}]}`,
		`{"schema":"rpcrdma.truth/1","calls":[null]}`, `{"schema":"rpcrdma.truth/1","calls":[{"xid":"1","sends":[null]}]}`,
		`{"schema":"rpcrdma.truth/1","calls":[{"xid":"x"}]}`} {
		if _, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestOverwrittenBuffer(t *testing.T) {
	tr := fixture(t, map[string]string{"trace.server": strings.Replace(serverTraceText, "# tracer: nop",
		"# entries-in-buffer/entries-written: 18/19   #P:1", 1)})
	if !tr.Overwritten {
		t.Error("lost events were not noticed")
	}
}

func TestSegmentText(t *testing.T) {
	s := ReadSegment{108, Segment{0xdaff2b02, 4097, 0x83598e9a08f0a000}}
	b, _ := s.MarshalText()
	var back ReadSegment
	if err := back.UnmarshalText(b); err != nil || back != s {
		t.Errorf("%s: %v %v", b, back, err)
	}
	for _, bad := range []string{"", "1", "1@2", "x@1:1", "1@x:1", "1@1:x", "1@1:100000000"} {
		if new(Segment).UnmarshalText([]byte(bad)) == nil {
			t.Errorf("segment %q was accepted", bad)
		}
	}
}

func FuzzClientTrace(f *testing.F) {
	f.Add(clientTraceText)
	f.Fuzz(func(t *testing.T, text string) {
		c, s := newClientTrace(), newServerTrace()
		if c.read(strings.NewReader(text)) != nil || s.read(strings.NewReader(text)) != nil {
			return
		}
		tr := &Truth{Schema: Schema}
		tr.merge(c, s)
		Compare(tr, transactions(), Options{})
	})
}

func FuzzServerTrace(f *testing.F) {
	f.Add(serverTraceText)
	f.Fuzz(func(t *testing.T, text string) {
		c, s := newClientTrace(), newServerTrace()
		if c.read(strings.NewReader(clientTraceText)) != nil || s.read(strings.NewReader(text)) != nil {
			return
		}
		tr := &Truth{Schema: Schema}
		tr.merge(c, s)
		Compare(tr, transactions(), Options{Taps: 2})
	})
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if _, err := fixture(f, nil).WriteTo(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.String())
	f.Fuzz(func(t *testing.T, text string) {
		tr, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		Compare(tr, transactions(), Options{})
	})
}
