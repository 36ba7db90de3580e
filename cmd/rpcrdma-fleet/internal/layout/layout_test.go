package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func some(t testing.TB, n int) *Unit {
	t.Helper()
	var files []File
	for i := range n {
		files = append(files, File{URL: fmt.Sprintf("s3://caps/nfs-7/cap-%d.pcap", i), Size: int64(i) * 1000, ETag: "\"x\"", Modified: time.Unix(int64(i), 5)})
	}
	u, err := NewUnit("nfs-7", files, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func done(u *Unit) *Done {
	hash := strings.Repeat("0a", 32)
	return &Done{
		Unit: u.ID, Tap: u.Tap, Status: 3, Damage: 1, Problems: []Problem{{Text: "x"}}, Notes: []string{}, State: Result{Name: StateName(u.ID), Size: 1, SHA256: hash, Unpacked: 3},
		Counts:  Counts{Files: len(u.Files), Stored: u.Bytes(), Rows: 7},
		Results: []Result{{Name: PartName("2026-11-21", u.Tap, u.ID, 0), Size: 5, SHA256: hash, Rows: 3}, {Name: PartName("2026-11-22", u.Tap, u.ID, 1), Size: 5, SHA256: hash, Rows: 4}},
	}
}

func TestUnit(t *testing.T) {
	u := some(t, 5)
	got, err := ParseUnit(u.Encode())
	if err != nil || !bytes.Equal(got.Encode(), u.Encode()) {
		t.Fatal(got, err)
	}
	if other := some(t, 5); other.ID != u.ID || !IsID(u.ID) {
		t.Error("equal units have other IDs")
	}
	if other := some(t, 6); other.ID == u.ID {
		t.Error("other units have the same ID")
	}
	j, err := NewJob([]string{"x"}, []string{u.ID, some(t, 6).ID, u.ID}, u.Options, time.Now(), "v1")
	if err != nil || len(j.Units) != 2 {
		t.Fatal(j, err)
	}
	if x, err := ParseJob(j.Encode()); err != nil || x.ID != j.ID {
		t.Error(x, err)
	}
	later, err := NewJob(nil, j.Units, u.Options, time.Now().Add(time.Hour), "v2")
	if err != nil || later.ID != j.ID {
		t.Error("the ID of a job depends on more than its units")
	}
	d := done(u)
	if x, err := ParseDone(d.Encode(), u.Outline()); err != nil || !bytes.Equal(x.Encode(), d.Encode()) {
		t.Error(x, err)
	}
	f := &Failure{Unit: u.ID, Attempt: 2, Reason: strings.Repeat("\xff", 1<<20), Time: time.Now()}
	if x, err := ParseFailure(f.Encode(), u.ID); err != nil || x.Attempt != 2 {
		t.Error(x, err)
	}
	a := &Aside{Unit: u.ID, Attempts: 3, Reason: "x", Time: time.Now()}
	if x, err := ParseAside(a.Encode(), u.ID); err != nil || x.Attempts != 3 {
		t.Error(x, err)
	}
	if _, err := ParseAside(a.Encode(), some(t, 6).ID); !errors.Is(err, ErrFormat) {
		t.Error(err)
	}
}

// TestRefused changes objects as somebody would who wants to harm.
func TestRefused(t *testing.T) {
	u := some(t, 3)
	units := map[string]func(*Unit){
		"no tap":        func(u *Unit) { u.Tap = "" },
		"tap":           func(u *Unit) { u.Tap = "a\x1b[31m" },
		"long tap":      func(u *Unit) { u.Tap = strings.Repeat("x", MaxTap+1) },
		"no files":      func(u *Unit) { u.Files = nil },
		"size":          func(u *Unit) { u.Files[0].Size = -1 },
		"sum of sizes":  func(u *Unit) { u.Files[0].Size = 1 << 62 },
		"elsewhere":     func(u *Unit) { u.Files[0].URL = "file:///caps/../etc/shadow" },
		"escaped":       func(u *Unit) { u.Files[0].URL = "s3://caps/%2e%2e/x" },
		"no URL":        func(u *Unit) { u.Files[0].URL = "/etc/shadow" },
		"scheme":        func(u *Unit) { u.Files[0].URL = "HT TP://x/y" },
		"memory":        func(u *Unit) { u.Options.Memory = 1 },
		"much memory":   func(u *Unit) { u.Options.Memory = 1 << 60 },
		"parts":         func(u *Unit) { u.Options.PartFiles = 0 },
		"bytes of part": func(u *Unit) { u.Options.PartBytes = -5 },
		"top":           func(u *Unit) { u.Options.Top = -1 },
		"groups":        func(u *Unit) { u.Options.By = make([]string, 1000) },
		"schema":        func(u *Unit) { u.Schema = "rpcrdma.fleet.unit/2" },
	}
	for name, change := range units {
		x := *u
		x.Files = slices.Clone(u.Files)
		change(&x)
		if _, err := ParseUnit(x.Encode()); !errors.Is(err, ErrFormat) {
			t.Errorf("%s, and the old ID: %v", name, err)
		}
		x.ID = x.hash()
		if _, err := ParseUnit(x.Encode()); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	text := string(u.Encode())
	for name, x := range map[string]string{
		"empty": "", "array": "[]", "null": "null", "two": text + text, "unknown key": strings.Replace(text, `"tap"`, `"tapp"`, 1),
		"cut": text[:len(text)/2], "number": strings.Replace(text, `"size": 0`, `"size": 1e99`, 1), "ID": strings.Replace(text, u.ID, strings.Repeat("0", 32), 1),
	} {
		if _, err := ParseUnit([]byte(x)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(*Done){
		"unit":        func(d *Done) { d.Unit = strings.Repeat("0", 32) },
		"tap":         func(d *Done) { d.Tap = "other" },
		"status":      func(d *Done) { d.Status = 1 },
		"files":       func(d *Done) { d.Counts.Files = 1 },
		"rows":        func(d *Done) { d.Counts.Rows = 8 },
		"state":       func(d *Done) { d.State.Name = "units/../x" },
		"hash":        func(d *Done) { d.State.SHA256 = strings.Repeat("A", 64) },
		"of another":  func(d *Done) { d.Results[0].Name = PartName("2026-11-21", u.Tap, strings.Repeat("0", 32), 0) },
		"elsewhere":   func(d *Done) { d.Results[0].Name = "transactions/day=../../x" },
		"order":       func(d *Done) { slices.Reverse(d.Results) },
		"size":        func(d *Done) { d.Results[0].Size = -1 },
		"connections": func(d *Done) { d.Counts.Connections = -1 },
		"day":         func(d *Done) { d.Results[0].Name = PartName("..", u.Tap, u.ID, 0) },
	} {
		d := done(u)
		change(d)
		if _, err := ParseDone(d.Encode(), u.Outline()); !errors.Is(err, ErrFormat) {
			t.Errorf("done, %s: %v", name, err)
		}
	}
}

func TestParts(t *testing.T) {
	u := some(t, 10) // of 0, 1000, 2000, … bytes
	u.Options.PartBytes, u.Options.PartFiles = 5000, 3
	if got := u.Parts(); !slices.Equal(got, []int{3, 5, 6, 7, 8, 9, 10}) {
		t.Error(got)
	}
}

func TestNatural(t *testing.T) {
	list := []string{"a", "a1", "a01b", "a2", "a9.pcap", "a10.pcap", "a10.pcap1", "a10.pcap2", "a10.pcap10", "a99999999999999999999999", "a100000000000000000000000", "b"}
	got := slices.Clone(list)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		rng.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
		slices.SortFunc(got, Natural)
		if !slices.Equal(got, list) {
			t.Fatal(got)
		}
	}
	for names, want := range map[string]bool{
		"cap-1.pcap cap-02.pcap": true, "cap.pcap cap.pcap1 cap.pcap22": true, "a.pcap b.pcap": false, "a-1.pcap a-1.pcap.zst": false,
		"cap_20261121053217.pcap cap_20261121063217.pcap": true,
	} {
		var files []File
		for name := range strings.FieldsSeq(names) {
			files = append(files, File{URL: name})
		}
		if Ordered(files) != want {
			t.Error(names)
		}
	}
}

func TestTap(t *testing.T) {
	for _, c := range []struct{ folder, url, want string }{
		{"nfs-7", "s3://caps/nfs-7/a", "nfs-7"},
		{"", "file:///data/nfs-7/a", "nfs-7"},
		{"", "s3://caps/a", "default"},
		{"rack 1/nfs-7", "s3://caps/rack%201/nfs-7/a", "rack 1/nfs-7"},
		{"a\x01b", "s3://caps/a", "a%01b"},
	} {
		f := Found{File: File{URL: c.url}, Folder: c.folder}
		if got := f.Tap(); got != c.want || CheckTap(got) != nil {
			t.Errorf("%q: %q, not %q", c.folder, got, c.want)
		}
	}
	for _, long := range []string{strings.Repeat("x", 200), strings.Repeat("é", 100), strings.Repeat("\x01", 100), "\xff"} {
		f, g := Found{Folder: long}, Found{Folder: long + "y"}
		if CheckTap(f.Tap()) != nil || f.Tap() == g.Tap() {
			t.Errorf("%q: %q and %q", long, f.Tap(), g.Tap())
		}
	}
	for name, want := range map[string]string{
		"transactions/day=2026-11-21/": "transactions/day=2026-11-21/tap=a%2Fb/", "transactions/day=../": "", "transactions/x/": "", "transactions/day=2026-11-21x/": "",
	} {
		if got, _ := DayFolder(name, "a/b"); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// FuzzParse reads objects of any bytes: what is accepted is the same when it is written and read again, and its names
// stay in their folders.
func FuzzParse(f *testing.F) {
	u := some(f, 3)
	j, err := NewJob([]string{"x"}, []string{u.ID}, u.Options, time.Unix(0, 0), "v")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(u.Encode())
	f.Add(j.Encode())
	f.Add(done(u).Encode())
	f.Add((&Failure{Unit: u.ID, Attempt: 1, Reason: "x"}).Encode())
	f.Add((&Aside{Unit: u.ID, Attempts: 1, Reason: "x"}).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if x, err := ParseUnit(b); err == nil {
			if y, err := ParseUnit(x.Encode()); err != nil || y.ID != x.ID {
				t.Error(err)
			}
			if ends := x.Parts(); ends[len(ends)-1] != len(x.Files) {
				t.Error(ends)
			}
			for _, part := range strings.Split(PartName("2026-11-21", x.Tap, x.ID, 0), "/") {
				if part == ".." || part == "." || part == "" {
					t.Errorf("%q", x.Tap)
				}
			}
		}
		if x, err := ParseJob(b); err == nil {
			if y, err := ParseJob(x.Encode()); err != nil || y.ID != x.ID {
				t.Error(err)
			}
		}
		if x, err := ParseDone(b, u.Outline()); err == nil {
			if _, err := ParseDone(x.Encode(), u.Outline()); err != nil {
				t.Error(err)
			}
			for i := range x.Results {
				if strings.Contains(x.Results[i].Name, "..") {
					t.Errorf("%q", x.Results[i].Name)
				}
			}
		}
		if x, err := ParseFailure(b, u.ID); err == nil && !json.Valid(x.Encode()) {
			t.Error("a failure")
		}
		if x, err := ParseAside(b, u.ID); err == nil && !json.Valid(x.Encode()) {
			t.Error("an aside")
		}
	})
}
