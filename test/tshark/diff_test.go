package tshark

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// captures lists the captures to compare, unpacked: not every tshark reads
// compressed files.
func captures(t *testing.T) []string {
	var files []string
	seen := map[string]bool{}
	for _, dir := range []string{"../../samples", "../../samples/kerberos", os.Getenv("RPCRDMA_CAPTURES")} {
		if dir == "" {
			continue
		}
		for _, pattern := range []string{"*.pcap", "*.pcapng", "*.cap", "*.erf", "*.pcap.gz", "*.pcap.zst", "*.pcapng.zst"} {
			found, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range found {
				name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(f), ".gz"), ".zst")
				if !seen[name] {
					seen[name] = true
					file := unpack(t, f)
					files = append(files, file)
					if k := keytabOf(f); k != "" {
						keytabs[file] = k
					}
				}
			}
		}
	}
	if len(files) == 0 {
		t.Fatal("no captures to compare")
	}
	sort.Slice(files, func(i, j int) bool { return filepath.Base(files[i]) < filepath.Base(files[j]) })
	return files
}

// keytabs lists the keytab of each capture that has one.
var keytabs = map[string]string{}

// keytabOf finds the keytab of a capture: NAME.keytab beside it, or server.keytab
// in NAME.truth.
func keytabOf(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".pcap")
	for _, k := range []string{name + ".keytab", filepath.Join(name+".truth", "server.keytab")} {
		k = filepath.Join(filepath.Dir(file), k)
		if _, err := os.Stat(k); err == nil {
			return k
		}
	}
	return ""
}

// unpack returns the name of a file with the uncompressed content of file.
func unpack(t *testing.T, file string) string {
	t.Helper()
	ext := filepath.Ext(file)
	if ext != ".gz" && ext != ".zst" {
		return file
	}
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	var r io.Reader
	if ext == ".gz" {
		r, err = gzip.NewReader(in)
	} else {
		r, err = zstd.NewReader(in)
	}
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), strings.TrimSuffix(filepath.Base(file), ext))
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, r); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

// shown is how many differences of a capture are printed.
const shown = 40

// diff compares one capture.
type diff struct {
	fail   func(string)
	report *report
	known  map[string]bool
	ours   *ours
	theirs map[uint64]*row
}

// point is a place where the two sides differ.
type point struct {
	d     *diff
	frame uint64 // where tshark shows it, or we do if it does not
	row   *row   // nil if tshark shows nothing
	field string // empty if all of it is missing on one side
	// messages are ours of that frame, in the order in which tshark shows them.
	messages     []*message
	ours, theirs []string
}

func (p *point) String() string {
	return fmt.Sprintf("frame %d, %s: ours %s, tshark %s", p.frame, p.field, brief(p.ours), brief(p.theirs))
}

func brief(v []string) string {
	const most = 12
	if len(v) > most {
		return fmt.Sprintf("%q… (%d)", v[:most], len(v))
	}
	return fmt.Sprintf("%q", v)
}

// mismatch looks for an exception that explains p.
func (d *diff) mismatch(p point) {
	p.d = d
	for i := range exceptions {
		e := &exceptions[i]
		if e.applies(&p) {
			d.report.excepted[e.id]++
			return
		}
	}
	d.report.failures++
	d.fail(p.String())
}

func (d *diff) equal(p point) {
	f := fieldByName[p.field]
	a, b := p.ours, p.theirs
	if f.once {
		a, b = distinct(a), distinct(b)
	}
	if slices.Equal(a, b) {
		if len(a) > 0 {
			d.report.agreed[p.field] += len(a)
		}
		return
	}
	d.mismatch(p)
}

func distinct(v []string) []string {
	v = slices.Clone(v)
	slices.Sort(v)
	return slices.Compact(v)
}

func (d *diff) compare() {
	numbers := make([]uint64, 0, len(d.theirs))
	for n := range d.theirs {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	if len(numbers) != len(d.ours.frames) {
		d.fail(fmt.Sprintf("we read %d packets, tshark %d", len(d.ours.frames), len(numbers)))
	}
	for _, n := range numbers {
		r := d.theirs[n]
		if f := d.ours.frames[n]; f != nil {
			d.packet(n, r, f)
		}
		d.headers(n, r)
		d.rpcs(n, r)
	}
	for _, m := range d.ours.messages {
		if m.header != nil && !m.seen {
			d.mismatch(point{frame: m.last, row: d.theirs[m.last], field: "rpcordma.xid", messages: []*message{m}, ours: m.header["rpcordma.xid"]})
		}
		if m.values != nil && !m.inRPC {
			d.mismatch(point{frame: m.last, row: d.theirs[m.last], field: "rpc.xid", messages: []*message{m}, ours: m.values["rpc.xid"]})
		}
	}
}

func (d *diff) packet(n uint64, r *row, f *frame) {
	for i := range allFields {
		name := allFields[i].name
		if allFields[i].level != packetLevel || !d.known[name] || len(r.values[name]) == 0 && len(f.values[name]) == 0 {
			continue
		}
		d.equal(point{frame: n, row: r, field: name, ours: f.values[name], theirs: r.values[name]})
	}
}

// find returns our message that is meant by an XID in a frame: one with the
// same sender, and of those the nearest.
func (d *diff) find(xid string, frame uint64, accept func(*message) bool) *message {
	x, err := strconv.ParseUint(xid, 10, 32)
	if err != nil {
		return nil
	}
	var best *message
	f := d.ours.frames[frame]
	for _, m := range d.ours.byXID[uint32(x)] {
		if accept(m) && (f == nil || f.src == m.from) && (best == nil || distance(m, frame) < distance(best, frame)) {
			best = m
		}
	}
	return best
}

// distance is how far a frame is from a message, 0 if it is within its
// transaction.
func distance(m *message, frame uint64) uint64 {
	first, last := min(m.first, m.tx.first.Number), m.last
	if r := m.tx.reply; r.Seen() {
		last = max(last, r.Number)
	}
	switch {
	case frame < first:
		return first - frame
	case frame > last:
		return frame - last
	}
	return 0
}

// headers compares the transport headers that tshark finds in a frame.
func (d *diff) headers(n uint64, r *row) {
	xids := r.values["rpcordma.xid"]
	var list []*message
	for _, x := range xids {
		m := d.find(x, n, func(m *message) bool { return m.header != nil })
		if m == nil {
			d.mismatch(point{frame: n, row: r, field: "rpcordma.xid", theirs: xids})
			return
		}
		m.seen = true
		list = append(list, m)
	}
	d.level(headerLevel, n, r, list, func(m *message) values { return m.header })
}

// rpcs compares the RPC messages that tshark finds in a frame.
func (d *diff) rpcs(n uint64, r *row) {
	xids, types := r.values["rpc.xid"], r.values["rpc.msgtyp"]
	if len(types) != len(xids) {
		d.mismatch(point{frame: n, row: r, field: "rpc.msgtyp", ours: xids, theirs: types})
		return
	}
	var list []*message
	for i, x := range xids {
		reply := types[i] != "0"
		m := d.find(x, n, func(m *message) bool { return m.values != nil && m.reply == reply })
		if m == nil {
			d.mismatch(point{frame: n, row: r, field: "rpc.xid", theirs: xids})
			return
		}
		m.inRPC = true
		list = append(list, m)
	}
	d.level(messageLevel, n, r, list, func(m *message) values { return m.values })
}

// level compares all fields of a level. In a frame with several messages the
// values of all of them follow each other.
func (d *diff) level(l level, n uint64, r *row, list []*message, of func(*message) values) {
	if len(list) == 0 {
		return
	}
	for i := range allFields {
		name := allFields[i].name
		if allFields[i].level != l || !d.known[name] {
			continue
		}
		var mine []string
		for _, m := range list {
			mine = append(mine, of(m)[name]...)
		}
		if len(mine) == 0 && len(r.values[name]) == 0 {
			continue
		}
		d.equal(point{frame: n, row: r, field: name, messages: list, ours: mine, theirs: r.values[name]})
	}
}

// report counts what was compared.
type report struct {
	agreed   map[string]int // values by field
	excepted map[string]int // points by exception
	failures int
}

func newReport() *report { return &report{agreed: map[string]int{}, excepted: map[string]int{}} }

func (r *report) merge(o *report) {
	for k, n := range o.agreed {
		r.agreed[k] += n
	}
	for k, n := range o.excepted {
		r.excepted[k] += n
	}
	r.failures += o.failures
}

// groups counts the values that agree by protocol.
func (r *report) groups() map[string]int {
	groups := map[string]int{}
	for k, n := range r.agreed {
		group, _, _ := strings.Cut(k, ".")
		groups[group] += n
	}
	return groups
}

func (r *report) log(t *testing.T) {
	values := 0
	groups := r.groups()
	for _, n := range groups {
		values += n
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d values of %d fields agree", values, len(r.agreed))
	for _, k := range sortedKeys(groups) {
		fmt.Fprintf(&b, ", %s %d", k, groups[k])
	}
	if r.failures > 0 {
		fmt.Fprintf(&b, "; %d DIFFERENCES", r.failures)
	}
	for _, k := range sortedKeys(r.excepted) {
		fmt.Fprintf(&b, "\n  exception %s: %d", k, r.excepted[k])
	}
	t.Log(b.String())
}

func sortedKeys(m map[string]int) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
