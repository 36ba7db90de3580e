package tshark

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// lookUp returns the path of tshark.
func lookUp() (string, error) {
	if path := os.Getenv("RPCRDMA_TSHARK"); path != "" {
		return exec.LookPath(path)
	}
	return exec.LookPath("tshark")
}

// knownFields returns those of the fields that this version of tshark has.
func knownFields(t *testing.T, tshark string) map[string]bool {
	t.Helper()
	cmd := exec.Command(tshark, "-G", "fields")
	cmd.Env = environment(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("tshark -G fields: %v", err)
	}
	known := make(map[string]bool)
	s := bufio.NewScanner(bytes.NewReader(out))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		if c := strings.Split(s.Text(), "\t"); len(c) > 2 && c[0] == "F" {
			known[c[2]] = true
		}
	}
	return known
}

// environment keeps the user's preferences and plugins out.
func environment(t *testing.T) []string {
	dir := t.TempDir()
	return append(os.Environ(),
		"WIRESHARK_CONFIG_DIR="+dir, "XDG_CONFIG_HOME="+dir, "HOME="+dir, "LC_ALL=C.UTF-8", "TZ=UTC")
}

// Characters that occur in no field.
const (
	columnSep = "\x02"
	valueSep  = "\x01"
)

// row is what tshark shows of one frame: the values of each field in the order
// of the packet. Values are in the form that values_test.go defines.
type row struct {
	frame     uint64
	values    map[string][]string
	malformed bool
}

// dissect runs tshark over a capture, with extra arguments.
func dissect(t *testing.T, tshark, file string, known map[string]bool, extra ...string) map[uint64]*row {
	t.Helper()
	var names []string
	for _, f := range allFields {
		if known[f.name] {
			names = append(names, f.name)
		}
	}
	args := []string{
		"-n", "-2", "-r", file, "-T", "fields",
		// Segments out of order are put in order, as we do.
		"-o", "tcp.reassemble_out_of_order:TRUE",
		"-E", "separator=" + columnSep, "-E", "aggregator=" + valueSep, "-E", "occurrence=a",
		"-e", "frame.number", "-e", "_ws.malformed",
	}
	for _, n := range names {
		args = append(args, "-e", n)
	}
	args = append(args, extra...)
	if k := keytabs[file]; k != "" {
		args = append(args, "-o", "kerberos.decrypt:TRUE", "-K", k)
	}
	cmd := exec.Command(tshark, args...)
	cmd.Env = environment(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, stderr.Bytes())
	}
	rows := make(map[uint64]*row)
	s := bufio.NewScanner(bytes.NewReader(out))
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		columns := strings.Split(s.Text(), columnSep)
		if len(columns) != len(names)+2 {
			t.Fatalf("tshark printed %d columns, want %d: %q", len(columns), len(names)+2, s.Text())
		}
		n, err := strconv.ParseUint(columns[0], 10, 64)
		if err != nil {
			t.Fatalf("frame number %q: %v", columns[0], err)
		}
		r := &row{frame: n, values: make(map[string][]string), malformed: columns[1] != ""}
		for i, c := range columns[2:] {
			if c == "" {
				continue
			}
			f := fieldByName[names[i]]
			for _, v := range strings.Split(c, valueSep) {
				// Several empty strings look like one.
				if v = f.kind.canonical(v); v != "" {
					r.values[f.name] = append(r.values[f.name], v)
				}
			}
		}
		rows[n] = r
	}
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}
