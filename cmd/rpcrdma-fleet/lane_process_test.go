//go:build lane

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
)

// dump runs rpcrdma-dump, and returns what it writes. Status 1 of check says that errors were found.
func dump(t *testing.T, args ...string) []byte {
	t.Helper()
	program := os.Getenv("LANE_DUMP")
	if program == "" {
		t.Fatal("LANE_DUMP names no rpcrdma-dump: use lane/run")
	}
	var out, errs bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && (cmd.ProcessState.ExitCode() != 1 || args[0] != "check" || errs.Len() > 0 && !bytes.Contains(errs.Bytes(), []byte("note: "))) {
		t.Fatalf("rpcrdma-dump %q: %v, %s", args, err, &errs)
	}
	return out.Bytes()
}

// tapName is what rows of a fleet have besides those of a process.
var tapName = regexp.MustCompile(`"(tap|capture|connection_key)": ?"[^"]*",\s*|"capture_frame": ?\d+,\s*`)

// sessionInput is what sessions have of their input: taps in a fleet, files in a process.
var sessionInput = regexp.MustCompile(`"inputs": ?\[[^\]]*\],\s*|"tap": ?"[^"]*",\s*`)

// outside compares what the fleet has made with what rpcrdma-dump makes of the same captures, which knows no unit and
// no store: all of the JSON of report and check, and all rows of Parquet.
func outside(t *testing.T, l *lane) {
	dir := t.TempDir()
	taps, err := filepath.Glob(filepath.Join(l.caps, "tap-*"))
	if err != nil || len(taps) != laneTaps {
		t.Fatal(taps, err)
	}
	report, check := []string{"report", "-T", "json"}, []string{"check", "-T", "json"}
	rows, names := map[string][]string{}, []string{}
	for _, tap := range taps {
		files, err := filepath.Glob(filepath.Join(tap, "*"))
		if err != nil || len(files) != 10 {
			t.Fatal(files, err)
		}
		base := filepath.Join(dir, filepath.Base(tap))
		for i, c := range []*[]string{&report, &check} {
			state := fmt.Sprint(base, ".", i)
			dump(t, append([]string{(*c)[0], "--save-state", state}, files...)...)
			*c = append(*c, state)
		}
		dump(t, append([]string{"export", "parquet", "-w", base + ".parquet"}, files...)...)
		rows[filepath.Base(tap)] = rowsOf(t, base+".parquet")
		names = append(names, filepath.Base(tap))
	}

	// report: the fleet says what it was made from, and names taps where a process names files.
	var want, got map[string]json.RawMessage
	decodeInto(t, dump(t, report...), &want)
	decodeInto(t, []byte(l.plain("report")), &got)
	var inputs []string
	decodeInto(t, got["inputs"], &inputs)
	if slices.Sort(inputs); got["units"] == nil || want["units"] != nil || !slices.Equal(inputs, names) {
		t.Errorf("report: inputs %q", inputs)
	}
	inputName := regexp.MustCompile(`"(tap": "tap-\d+|file": "cap-0\.pcap)"|FILE\b|\bcap-0\.pcap`)
	for _, m := range []map[string]json.RawMessage{want, got} {
		delete(m, "units")
		delete(m, "inputs")
		m["diagnosis"] = inputName.ReplaceAll(m["diagnosis"], []byte("TAP"))
		for _, key := range [...]string{"slowest", "connections"} {
			m[key] = tapName.ReplaceAll(m[key], nil)
		}
		m["sessions"] = sessionInput.ReplaceAll(m["sessions"], nil)
	}
	if a, b := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(a, b) {
		t.Errorf("report: keys %q, want %q", a, b)
	}
	for key := range want {
		if !bytes.Equal(got[key], want[key]) {
			t.Errorf("report: %s differs from that of one process: %s", key, differ(got[key], want[key]))
		}
	}

	// check: the first object says what it was made from; what follows has the same bytes.
	head, rest, _ := bytes.Cut([]byte(l.plain("check")), []byte("},\n"))
	alone, ok := bytes.CutPrefix(dump(t, check...), []byte("[\n"))
	if !ok || !bytes.Contains(head, []byte(`"rpcrdma.fleet.units/1"`)) || !bytes.Equal(tapName.ReplaceAll(rest, nil), alone) {
		t.Errorf("check differs from that of one process: %s", differ(rest, alone))
	}

	// Parquet.
	total := 0
	list, err := filepath.Glob(filepath.Join(l.s.root, l.out, "units", "*", "done.json"))
	if err != nil || len(list) != laneTaps {
		t.Fatal(list, err)
	}
	named := 0
	for _, name := range list {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		d := &layout.Done{}
		decodeInto(t, b, d)
		var got []string
		for _, r := range d.Results {
			got = append(got, rowsOf(t, filepath.Join(l.s.root, l.out, filepath.FromSlash(r.Name)))...)
		}
		want := rows[d.Tap]
		slices.Sort(got)
		slices.Sort(want)
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("tap %s: %d and %d rows; row %d: %.2000s\nwant %.2000s", d.Tap, len(got), len(want), i, row(got, i), row(want, i))
			}
			if bytes.Contains([]byte(got[i]), []byte(`"path":"`)) {
				named++
			}
		}
		total += len(got)
	}
	if total == 0 || named == 0 {
		t.Errorf("%d rows, %d with a path", total, named)
	}
	t.Logf("%d rows, %d with a path", total, named)
}

func row(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return "none"
}

func decodeInto(t *testing.T, b []byte, v any) {
	t.Helper()
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatalf("%v: %.200s", err, b)
	}
}

// rowsOf are the rows of a Parquet file, as JSON.
func rowsOf(t *testing.T, name string) (list []string) {
	t.Helper()
	rows, err := pq.ReadFile[any](name)
	if err != nil {
		t.Fatal(name, err)
	}
	for _, row := range rows {
		b, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(b))
	}
	return list
}
