package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/analyze/connections"
	"github.com/rpcrdma/toolkit/analyze/diagnosis"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/merge"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/unit"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/internal/testtools/fleetgen"
)

// tappedFleet is captures of taps, and the units that they are.
type tappedFleet struct {
	units []*layout.Unit
	job   *layout.Job
}

const tapCount = 8

// newTappedFleet makes captures: of 8 taps with hosts of their own, and of one more that saw what the first one saw.
func newTappedFleet(t *testing.T) *tappedFleet {
	t.Helper()
	const samples = "../../samples/"
	in := []string{samples + "rocev2-nfs41-recall.pcap", samples + "iwarp-nfs41-recall.pcap", samples + "rocev2-nfs3-longcall.pcap", samples + "rocev2-rping.pcap"}
	dir := filepath.Join(t.TempDir(), "caps")
	if err := fleetgen.Write(dir, in, fleetgen.Options{Taps: tapCount, Slices: 5, Seed: 3}); err != nil {
		t.Fatal(err)
	}
	// A state has the name of its tap, so these two are not the same.
	if err := os.CopyFS(filepath.Join(dir, "tap-0-again"), os.DirFS(filepath.Join(dir, "tap-0"))); err != nil {
		t.Fatal(err)
	}
	inputs := store.NewInputs(store.Options{})
	defer inputs.Close()
	f := &tappedFleet{}
	var err error
	pattern := dir + "/*/*"
	if f.units, err = unit.Plan(t.Context(), inputs, []string{pattern}, "", layout.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	if len(f.units) != tapCount+1 || len(f.units[0].Files) != 5 {
		t.Fatalf("%d units", len(f.units))
	}
	var ids []string
	for _, u := range f.units {
		ids = append(ids, u.ID)
	}
	if f.job, err = layout.NewJob([]string{pattern}, ids, layout.DefaultOptions(), time.Unix(1, 0), "test"); err != nil {
		t.Fatal(err)
	}
	return f
}

// decode decodes units into a new store with the job, in an order, and returns the folder.
func (f *tappedFleet) decode(t *testing.T, order []int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out")
	s := open(t, dir)
	in := store.NewInputs(store.Options{})
	defer in.Close()
	if err := job.Write(t.Context(), s, f.job, f.units); err != nil {
		t.Fatal(err)
	}
	for _, i := range order {
		if _, err := unit.Run(t.Context(), f.units[i], in, s, unit.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func open(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// ended runs a command that ends with a status, and returns what it writes.
func ended(t *testing.T, status int, args ...string) (stdout, stderr []byte) {
	t.Helper()
	var out, errs bytes.Buffer
	if got := run(args, &cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}); got != status {
		t.Fatalf("%q: status %d, want %d\n%s", args, got, status, errs.Bytes())
	}
	return out.Bytes(), errs.Bytes()
}

var commands = [][]string{
	{"report", "-T", "json"}, {"report", "-v"}, {"check", "-T", "json", "--severity", "note"}, {"check", "-T", "ndjson"}, {"check"},
	{"connections", "-T", "json"}, {"connections"}, {"connections", "-v"},
}

// TestMerged: results over all taps are the same, byte for byte, in whatever order units were decoded, and whoever
// merges their states in whatever groups.
func TestMerged(t *testing.T) {
	f := newTappedFleet(t)
	all := make([]int, len(f.units))
	for i := range all {
		all[i] = i
	}
	one := f.decode(t, all)
	slices.Reverse(all)
	other := f.decode(t, all)
	for _, c := range commands {
		a, _ := ended(t, 0, append(slices.Clone(c), one)...)
		b, _ := ended(t, 0, append(slices.Clone(c), "--job", f.job.ID, other)...)
		if !bytes.Equal(a, b) {
			t.Errorf("%q differs", c)
		}
		if first, _, _ := bytes.Cut(a, []byte("\n")); !slices.Contains(c, "-T") && string(first) != fmt.Sprintf("%d units of job %s: %d done, 0 missing, 0 failed, 0 set aside", tapCount+1, f.job.ID, tapCount+1) {
			t.Errorf("%q: first line %q", c, first)
		}
	}

	// One process, which has all states at once.
	var units state.File
	for _, u := range f.units {
		b, err := os.ReadFile(filepath.Join(one, layout.StateName(u.ID)))
		if err != nil {
			t.Fatal(err)
		}
		x, err := state.Decode(b, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		units.Merge(x)
	}
	report, checked := oneProcess(t, &units)
	got, _ := ended(t, 0, "report", "-T", "json", one)
	var have struct {
		Units *merge.Units `json:"units"`
	}
	if err := json.Unmarshal(got, &have); err != nil {
		t.Fatal(err)
	}
	report.Units = have.Units
	var want bytes.Buffer
	if err := printable.Indented(&want, report); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) || have.Units.Done != tapCount+1 || report.All.Count == 0 {
		t.Errorf("the report is not that of one process: %+v, %d transactions\n%s", have.Units, report.All.Count, differ(got, want.Bytes()))
	}
	lines, _ := ended(t, 0, "check", "-T", "ndjson", "--severity", "note", one)
	if n := bytes.Count(lines, []byte("\n")); n != bytes.Count(checked, []byte("\n"))+2 { // units, and the summary
		t.Errorf("%d lines, and %d findings in one process", n, bytes.Count(checked, []byte("\n")))
	}
	rowsNamePackets(t, one)

	// What the copy of a tap saw counts once.
	var some state.File
	for _, u := range units.Units() {
		if again := inputOf(t, u); again != "tap-0-again" {
			some.Add(u)
		}
	}
	m, err := latency.FromUnits(&some)
	if err != nil {
		t.Fatal(err)
	}
	without, err := m.Report(&some)
	if err != nil || without.All.Count != report.All.Count || m.Taps() != tapCount {
		t.Errorf("%d transactions without the copy, %d with it, %v", without.All.Count, report.All.Count, err)
	}

	rounds := 50
	if testing.Short() {
		rounds = 5
	}
	random := rand.New(rand.NewPCG(4, 2))
	for range rounds {
		var files []*state.File
		for range 1 + random.IntN(5) {
			files = append(files, &state.File{})
		}
		for _, i := range random.Perm(len(units.Units())) {
			files[random.IntN(len(files))].Add(units.Units()[i])
			files[random.IntN(len(files))].Add(units.Units()[i])
		}
		x := &state.Index{}
		for i, part := range files {
			name := filepath.Join(t.TempDir(), fmt.Sprint(i))
			if err := os.WriteFile(name, part.Append(nil), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := x.Add(name); err != nil {
				t.Fatal(err)
			}
		}
		r, c := oneProcess(t, x)
		var b bytes.Buffer
		r.Units = have.Units
		if err := printable.Indented(&b, r); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Bytes(), got) || !bytes.Equal(c, checked) {
			t.Fatal("the result depends on the partition")
		}
	}
}

// differ is the first lines that differ.
func differ(got, want []byte) (lines string) {
	a, b := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range min(len(a), len(b)) {
		if !bytes.Equal(a[i], b[i]) && len(lines) < 2000 {
			lines += fmt.Sprintf("%d: %.200s, want %.200s\n", i+1, a[i], b[i])
		}
	}
	return lines + fmt.Sprintf("%d and %d lines", len(a), len(b))
}

// inputOf is the tap of a state.
func inputOf(t *testing.T, u *state.Unit) string {
	t.Helper()
	m, err := latency.FromUnits(state.Units{u})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := m.Report(state.Units{u})
	if err != nil {
		t.Fatal(err)
	}
	return rep.Inputs[0]
}

// rowsNamePackets: each row has its tap, its file, and the packet in that, which has the time of the row; and the key of its connection.
func rowsNamePackets(t *testing.T, dir string) {
	t.Helper()
	type row struct {
		Tap     string    `json:"tap"`
		Capture string    `json:"capture"`
		Packet  uint64    `json:"capture_frame"`
		Key     string    `json:"connection_key"`
		Time    time.Time `json:"time"`
		First   time.Time `json:"first_time"`
	}
	times := map[string][]int64{} // of the packets of files
	check := func(x *row, at time.Time) {
		name := strings.TrimPrefix(x.Capture, "file://")
		if times[name] == nil {
			r, err := capture.Open([]string{name}, capture.Options{})
			if err != nil {
				t.Fatalf("%+v: %v", x, err)
			}
			defer r.Close()
			for p, err := range capture.Packets(r) {
				if err != nil {
					t.Fatal(err)
				}
				times[name] = append(times[name], p.Time)
			}
		}
		switch n := len(times[name]); {
		case x.Packet < 1 || x.Packet > uint64(n) || times[name][x.Packet-1] != at.UnixNano():
			t.Errorf("%+v: not the packet of that time, of %d", x, n)
		case x.Tap != filepath.Base(filepath.Dir(name)) || !strings.HasSuffix(x.Key, fmt.Sprint("|", x.First.UnixNano())) && !x.First.IsZero():
			t.Errorf("%+v", x)
		case strings.Count(x.Key, "|") != 3:
			t.Errorf("%+v: no key", x)
		}
	}
	var rep struct{ Slowest, Connections []*row }
	b, _ := ended(t, 0, "report", "-T", "json", dir)
	decodeRow(t, b, &rep)
	for _, x := range rep.Slowest {
		check(x, x.Time)
	}
	for _, x := range rep.Connections {
		if x.Tap == "" || strings.Count(x.Key, "|") != 3 {
			t.Errorf("report: connection %+v", x)
		}
	}
	files := map[string]bool{}
	for _, c := range [...]string{"check", "connections"} {
		args := []string{c, "-T", "ndjson"}
		if c == "check" {
			args = append(args, "--severity", "note")
		}
		b, _ := ended(t, 0, append(args, dir)...)
		for line := range bytes.Lines(b) {
			var x row
			if decodeRow(t, line, &x); x.Key != "" {
				at := x.Time
				if at.IsZero() {
					at = x.First
				}
				check(&x, at)
				files[filepath.Base(x.Capture)] = true
			}
		}
	}
	if len(rep.Slowest) < 5 || len(rep.Connections) < tapCount || len(files) < 4 {
		t.Errorf("%d slow transactions, %d connections, rows of %d files", len(rep.Slowest), len(rep.Connections), len(files))
	}
}

func decodeRow(t *testing.T, b []byte, x any) {
	t.Helper()
	if err := json.Unmarshal(b, x); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
}

// oneProcess is the report and the findings of all units, as one process makes them.
func oneProcess(t *testing.T, src state.Source) (report *fleetReport, findings []byte) {
	t.Helper()
	m, err := latency.FromUnits(src)
	if err != nil {
		t.Fatal(err)
	}
	sessions := &session.Merger{}
	m.Renumbered = sessions.Add
	rep, err := m.Report(src)
	if err != nil {
		t.Fatal(err)
	}
	why, err := diagnosis.Merger{}.Report(src)
	if err != nil {
		t.Fatal(err)
	}
	if why == nil {
		t.Error("the report does not say why")
	}
	report = &fleetReport{Report: rep, Diagnosis: why, Sessions: sessions.Report()}
	res, err := check.FromUnits(src)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range res.Findings {
		findings = fmt.Appendf(findings, "%s %d %v %s\n", f.Rule.ID, f.Connection, f.Ref, f.Seen)
	}
	return report, findings
}

// TestNoStore wants commands that only read to make nothing where there is no store, and to say so.
func TestNoStore(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []string{"report", "check", "connections", "status"} {
		for name, says := range map[string]string{"none": "none: there is no such folder", "none/below": "none/below: there is no such folder", "file": "file: is not a folder"} {
			if _, stderr := ended(t, 1, c, name); !strings.Contains(string(stderr), "rpcrdma-fleet: "+says) {
				t.Errorf("%s %s: %s", c, name, stderr)
			}
		}
	}
	if _, err := os.Stat("none"); !os.IsNotExist(err) {
		t.Errorf("a folder was made (%v)", err)
	}
}

// TestNotDone: what is missing, failed, set aside or malformed is counted and named; the others are merged.
func TestNotDone(t *testing.T) {
	f := newTappedFleet(t)
	dir := f.decode(t, []int{0, 1, 2, 3, 4, 5})
	s := open(t, dir)
	write := func(name string, b []byte) {
		t.Helper()
		if _, err := s.WriteSmall(t.Context(), name, b); err != nil {
			t.Fatal(err)
		}
	}
	read := func(name string) []byte {
		t.Helper()
		b, err := s.ReadSmall(t.Context(), name, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	id := func(i int) string { return f.units[i].ID }
	write(layout.FailedName(id(6), 1), (&layout.Failure{Unit: id(6), Attempt: 1, Reason: "no\x1b[31m space"}).Encode())
	write(layout.AsideName(id(7)), (&layout.Aside{Unit: id(7), Attempts: 3, Reason: "crashed"}).Encode())
	// State that is not the one of done.json; a done.json of another unit.
	b := read(layout.StateName(id(1)))
	b[len(b)/2] ^= 1
	write(layout.StateName(id(1)), b)
	write(layout.DoneName(id(2)), read(layout.DoneName(id(3))))
	// A state that fits its done.json, with sections that cannot be read, or with other options.
	forge := func(i int, sections ...state.Section) {
		t.Helper()
		var x state.File
		forged := state.NewUnit(sections...)
		x.Add(forged)
		w, err := s.WriteSmall(t.Context(), layout.StateName(id(i)), x.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		d, err := layout.ParseDone(read(layout.DoneName(id(i))), f.units[i].Outline())
		if err != nil {
			t.Fatal(err)
		}
		d.State.Size, d.State.SHA256, d.State.Unpacked = w.Size, w.SHA256, int64(forged.Size())
		write(layout.DoneName(id(i)), d.Encode())
	}
	in := state.Input{}
	body := []byte(strings.Repeat("\xff", 1000))
	var sections []state.Section
	for _, x := range []state.Section{
		{Kind: latency.SectionKind, Version: latency.SectionVersion},
		{Kind: check.SectionKind, Version: check.SectionVersion},
		{Kind: connections.SectionKind, Version: connections.SectionVersion},
	} {
		x.Body = body
		sections = append(sections, x)
	}
	forge(3, append(sections, in.Section())...)
	other := latency.NewCollector(latency.Options{Top: 3}).State(latency.Source{}).Section()
	forge(4, other, check.New(check.Options{Profile: check.Linux, Apart: true}, nil).Section("x"), in.Section())
	for _, c := range commands {
		out, errs := ended(t, 3, append(slices.Clone(c), dir)...)
		want := `"units":9,"done":2,"damaged":0,"missing":1,"failed":5,"aside":1`
		if !slices.Contains(c, "-T") {
			want = ": 2 done, 1 missing, 5 failed, 1 set aside: INCOMPLETE"
		}
		if got := string(bytes.ReplaceAll(bytes.ReplaceAll(out, []byte("\n"), nil), []byte(" "), nil)); !strings.Contains(got, strings.ReplaceAll(want, " ", "")) {
			t.Errorf("%q: %.300s", c, got)
		}
		for i, reason := range map[int]string{
			1: "not the one that done.json names", 2: "of another unit", 3: "damaged", 4: "", 6: `no\x1b[31m space`, 7: "set aside: crashed", 8: "missing",
		} {
			line := ""
			for l := range strings.Lines(string(errs)) {
				if strings.Contains(l, id(i)) {
					line = l
				}
			}
			if line == "" || !strings.Contains(line, reason) {
				t.Errorf("%q, unit %d: %q, want %q", c, i, line, reason)
			}
		}
	}
	// States that have more than they promise, and such as promise more than is read.
	for promised, reason := range map[int64]string{5: "more than 5 bytes", 1 << 40: "more than 67108864", -1: "malformed"} {
		d, err := layout.ParseDone(read(layout.DoneName(id(0))), f.units[0].Outline())
		if err != nil {
			t.Fatal(err)
		}
		was := d.State.Unpacked
		d.State.Unpacked = promised
		write(layout.DoneName(id(0)), d.Encode())
		_, errs := ended(t, 3, "report", dir)
		if !regexp.MustCompile(id(0) + ".*" + reason).Match(errs) {
			t.Errorf("%d bytes promised: %s", promised, errs)
		}
		d.State.Unpacked = was
		write(layout.DoneName(id(0)), d.Encode())
	}
	ended(t, 2, "report", "--job", "x", dir)
	ended(t, 2, "report", dir, dir)
	ended(t, 2, "check", "-T", "xml", dir)
	ended(t, 1, "report", t.TempDir())
	ended(t, 2, "report", "--top", "11", dir)
}
