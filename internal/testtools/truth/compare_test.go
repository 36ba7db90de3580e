package truth

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCompareAgrees(t *testing.T) {
	r := Compare(fixture(t, nil), transactions(), Options{})
	for _, m := range r.Mismatches {
		t.Error(m)
	}
	if r.RPCs != 5 || r.Matched != 5 || r.Transactions != 7 {
		t.Errorf("%d RPCs, %d matched, %d transactions", r.RPCs, r.Matched, r.Transactions)
	}
	if len(r.Explained) != 1 || !strings.Contains(r.Explained[0].Reason, "never decoded") {
		t.Errorf("explained: %v", r.Explained)
	}
	if r.RTT.Pairs != 4 {
		t.Errorf("%d pairs of latencies, want 4", r.RTT.Pairs)
	}
	// Both ends were captured: every transaction is there twice.
	if r := Compare(fixture(t, nil), append(transactions(), transactions()...), Options{Taps: 2}); len(r.Mismatches) != 0 {
		t.Errorf("two taps: %v", r.Mismatches)
	}
}

// TestCompareFinds breaks one thing at a time.
func TestCompareFinds(t *testing.T) {
	for _, c := range []struct {
		name  string
		xid   uint32
		kinds string // of the mismatches, sorted
		f     func(*Transaction)
	}{
		{"xid", 3, "extra missing", func(t *Transaction) { t.XID = 99 }},
		{"program", 3, "nfsd procedure", func(t *Transaction) { t.Program = "nfsacl" }},
		{"version", 1, "nfsd procedure", func(t *Transaction) { t.Version = 2 }},
		{"procedure", 3, "nfsd nfsd procedure", func(t *Transaction) { t.Procedure = "NULL" }},
		{"minor version", 3, "procedure", func(t *Transaction) { t.MinorVersion = nil }},
		{"other minor version", 3, "procedure", func(t *Transaction) { t.MinorVersion = new(uint32) }},
		{"operations", 3, "nfsd operations", func(t *Transaction) { t.Operations = append(t.Operations[:2:2], t.Operations[3]) }},
		{"operation absent", 2, "nfsd nfsd operations", func(t *Transaction) {
			t.Operations = append(t.Operations[:1:1], Operation{"GETATTR", "NFS4ERR_NOENT"}, t.Operations[2])
		}},
		{"status", 2, "mountstats operations", func(t *Transaction) { t.Status = "NFS4_OK" }},
		{"call type", 3, "mountstats type", func(t *Transaction) { t.CallType = "RDMA_NOMSG" }},
		{"reply type", 5, "type", func(t *Transaction) { t.ReplyType = "RDMA_MSG" }},
		{"read position", 3, "chunks", func(t *Transaction) { t.ReadChunks[0].Position = 0 }},
		{"read handle", 3, "chunks", func(t *Transaction) { t.ReadChunks[0].Segments[1].Handle++ }},
		{"read segment absent", 3, "chunks header mountstats", func(t *Transaction) { t.ReadChunks[0].Segments = t.ReadChunks[0].Segments[:1] }},
		{"write offset", 4, "chunks", func(t *Transaction) { t.WriteChunks[0][0].Offset++ }},
		{"write chunk as reply chunk", 4, "chunks chunks chunks header mountstats mountstats", func(t *Transaction) {
			t.ReplyChunk, t.WriteChunks = t.WriteChunks[0], nil
		}},
		{"written length", 4, "mountstats written", func(t *Transaction) { t.WrittenChunks[0][0].Length++ }},
		{"written reply length", 5, "mountstats written", func(t *Transaction) { t.WrittenReplyChunk[0].Length-- }},
		{"credits requested", 2, "credits", func(t *Transaction) { t.CreditsRequested = 1 }},
		{"credits granted", 2, "credits", func(t *Transaction) { t.CreditsGranted = 1 }},
		{"call bytes", 3, "call-bytes mountstats", func(t *Transaction) { t.CallBytes -= 3 }},
		{"reply bytes", 4, "mountstats", func(t *Transaction) { t.ReplyBytes -= 3 }},
		{"reply bytes of a Reply chunk", 5, "mountstats reply-bytes", func(t *Transaction) { t.ReplyBytes = 256 }},
		{"bytes read", 3, "moved", func(t *Transaction) { t.RDMAReadBytes-- }},
		{"bytes written", 4, "moved", func(t *Transaction) { t.RDMAWriteBytes++ }},
		{"latency", 4, "latency", func(t *Transaction) { t.LatencyNS["total"]++ }},
		{"negative phase", 4, "latency latency", func(t *Transaction) { t.LatencyNS["server"] = -1 }},
		{"state", 4, "state", func(t *Transaction) { t.State = "incomplete" }},
		{"unknown state", 4, "schema state", func(t *Transaction) { t.State = "done" }},
		{"connection", 5, "connection", func(t *Transaction) { t.Connection = 1 }},
		{"fabric", 4, "connection", func(t *Transaction) { t.Fabric = "rocev1" }},
		{"client", 4, "connection", func(t *Transaction) { t.Client = "192.0.2.9" }},
		{"schema", 4, "schema", func(t *Transaction) { t.Schema = "" }},
		{"missing key", 4, "schema", func(t *Transaction) { t.Missing = []string{"notes"} }},
		{"callback", 0x537095f9, "callback callback", func(t *Transaction) { t.XID = 77 }},
		{"callback forward", 0x537095f9, "callback extra", func(t *Transaction) { t.Direction = "forward" }},
		{"callback ends", 0x537095f9, "callback callback", func(t *Transaction) { t.Client, t.Server = t.Server, t.Client }},
		{"mount protocol", 0xaa689d8c, "procedure", func(t *Transaction) { t.Procedure = "DUMP" }},
		{"mount protocol absent", 0xaa689d8c, "missing", func(t *Transaction) { t.XID = 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			txs := transactions()
			i := slices.IndexFunc(txs, func(tx *Transaction) bool { return tx.XID == c.xid })
			c.f(txs[i])
			r := Compare(fixture(t, nil), txs, Options{})
			var kinds []string
			for _, m := range r.Mismatches {
				kinds = append(kinds, m.Kind)
			}
			slices.Sort(kinds)
			if got := strings.Join(kinds, " "); got != c.kinds {
				t.Errorf("kinds %q, want %q", got, c.kinds)
				for _, m := range r.Mismatches {
					t.Log(m)
				}
			}
		})
	}
}

func TestLongerThanTheClient(t *testing.T) {
	txs := transactions()
	txs[1].LatencyNS["server"] += 5_000_000
	txs[1].LatencyNS["total"] += 5_000_000
	r := Compare(fixture(t, nil), txs, Options{})
	if len(r.Mismatches) != 0 || r.RTT.Longer != 1 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "xid=00000002 LOOKUP took 5.000 ms") {
		t.Errorf("%d longer, notes %q", r.RTT.Longer, r.Notes)
	}
}

func TestCompareDuplicate(t *testing.T) {
	txs := transactions()
	r := Compare(fixture(t, nil), append(txs, txs[1]), Options{})
	if len(r.Mismatches) != 1 || r.Mismatches[0].Kind != KindExtra {
		t.Errorf("a transaction twice: %v", r.Mismatches)
	}
}

func TestRules(t *testing.T) {
	drop := func(xid uint32) []*Transaction {
		return slices.DeleteFunc(transactions(), func(tx *Transaction) bool { return tx.XID == xid })
	}
	env := func(add string) map[string]string {
		return map[string]string{"scenario.env": "DRIVER=rxe VERS=4.1 " + add + "\n"}
	}
	encrypted := transactions()
	for _, tx := range encrypted {
		tx.Operations, tx.MinorVersion, tx.Status = nil, nil, ""
	}
	cut := transactions()
	cut[4].State = "incomplete"
	outside := fixture(t, env("CAPTURE_AT=midstream"))
	outside.Calls[1].Outside = OutsideBoth
	for _, c := range []struct {
		name       string
		t          *Truth
		txs        []*Transaction
		mismatches int
	}{
		{"krb5p", fixture(t, env("SEC=krb5p")), encrypted, 0},
		{"not krb5p", fixture(t, env("SEC=krb5i")), encrypted, 1 + 4 + 4 + 7},
		{"snap length", fixture(t, env("SNAPLEN=256")), cut, 0},
		{"no snap length", fixture(t, env("SNAPLEN=262144")), cut, 1},
		{"outside of the capture", outside, drop(2), 0},
		{"missing", fixture(t, nil), drop(2), 1},
		{"mount protocol in mid-stream", fixture(t, env("CAPTURE_AT=midstream")), drop(0xaa689d8c), 0},
	} {
		if r := Compare(c.t, c.txs, Options{}); len(r.Mismatches) != c.mismatches {
			t.Errorf("%s: %d mismatches, want %d:", c.name, len(r.Mismatches), c.mismatches)
			for _, m := range r.Mismatches {
				t.Log(m)
			}
		}
	}
}

func TestCompoundMatches(t *testing.T) {
	for _, c := range []struct {
		procedure string
		minor     uint32
		ops       string
		want      bool
	}{
		{"OPEN", 1, "SEQUENCE PUTFH OPEN GETFH ACCESS GETATTR", true},
		{"OPEN", 0, "PUTFH OPEN GETFH GETATTR", true},
		{"OPEN", 1, "PUTFH OPEN GETFH GETATTR", false},
		{"OPEN", 1, "SEQUENCE PUTFH OPEN=ERR", true},
		{"OPEN", 1, "SEQUENCE PUTFH OPEN", false},
		{"OPEN_NOATTR", 1, "SEQUENCE PUTFH OPEN GETFH GETATTR", false},
		{"SEQUENCE", 1, "SEQUENCE", true},
		{"EXCHANGE_ID", 1, "EXCHANGE_ID", true},
		{"EXCHANGE_ID", 1, "SEQUENCE EXCHANGE_ID", false},
		{"FS_LOCATIONS", 0, "PUTFH LOOKUP GETATTR RENEW", true},
		{"CLOSE", 2, "SEQUENCE PUTFH GETATTR CLOSE", true},
		{"CLOSE", 2, "SEQUENCE PUTFH CLOSE GETATTR", false},
		{"UNHEARD_OF", 2, "SEQUENCE", false},
	} {
		var ops []Operation
		for _, n := range strings.Fields(c.ops) {
			name, _, failed := strings.Cut(n, "=")
			status := "NFS4_OK"
			if failed {
				status = "NFS4ERR_NOENT"
			}
			ops = append(ops, Operation{name, status})
		}
		if got := compoundMatches(c.procedure, c.minor, ops); got != c.want {
			t.Errorf("%s %q: %v", c.procedure, c.ops, got)
		}
	}
}

func TestReadTransactions(t *testing.T) {
	line := `{"schema":"rpcrdma.transaction/1","time":"2026-09-21T05:33:11.123456789Z","xid":4294967295,"reply_frame":null,` +
		`"read_chunks":[{"position":108,"segments":[{"handle":1,"length":2,"offset":18446744073709551615}]}],"reply_chunk":null,"latency_ns":{"total":5}}`
	txs, err := ReadTransactions(strings.NewReader(line + "\n\n" + line + "\n"))
	if err != nil || len(txs) != 2 {
		t.Fatal(len(txs), err)
	}
	tx := txs[1]
	if tx.Line != 3 || tx.XID != 0xffffffff || tx.Time.Nanosecond() != 123456789 || tx.ReadChunks[0].Segments[0].Offset != 1<<64-1 {
		t.Errorf("%+v", tx)
	}
	if !slices.Contains(tx.Missing, "state") || slices.Contains(tx.Missing, "reply_chunk") {
		t.Errorf("missing keys: %v", tx.Missing)
	}
	for _, bad := range []string{"{", `{"xid":-1}`, `{"xid":4294967296}`, "[]", `{"time":"yesterday"}`} {
		if _, err := ReadTransactions(strings.NewReader(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestScanHeaders(t *testing.T) {
	header := func(xid, credits uint32) []byte {
		b := binary.BigEndian.AppendUint32(nil, xid)
		b = binary.BigEndian.AppendUint32(b, 1)
		return binary.BigEndian.AppendUint32(b, credits)
	}
	send := []*Send{{Requested: 128, Granted: 64}}
	calls := []*Call{{XID: 10, Sends: send}, {XID: 11, Sends: send}, {XID: 12, Sends: send}}
	// Place headers around every position where the window moves on.
	for shift := range 24 {
		b := make([]byte, 1<<20-shift, 1<<20+100)
		b = append(b, header(10, 128)...)
		b = append(b, header(11, 64)...)
		b = append(b, header(13, 64)...)
		seen, err := scanHeaders(bytes.NewReader(b), calls)
		if err != nil {
			t.Fatal(err)
		}
		if len(seen) != 2 || !seen[10].call || seen[10].reply || seen[11].call || !seen[11].reply {
			t.Errorf("shift %d: %v", shift, seen)
		}
	}
}

func TestMarkOutside(t *testing.T) {
	tr := fixture(t, map[string]string{"scenario.env": "CAPTURE_AT=midstream\n"})
	name := filepath.Join(t.TempDir(), "x.pcap")
	b := []byte("....\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x80 \x00\x00\x00\x03\x00\x00\x00\x01\x00\x00\x00\x40")
	if err := os.WriteFile(name, b, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := tr.MarkOutside(name); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name+"ng", []byte("other bytes"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := fixture(t, map[string]string{"scenario.env": "CAPTURE_AT=midstream\n"}).MarkOutside(name + "ng"); err == nil {
		t.Error("a capture of something else was accepted")
	}
	var got []string
	for _, c := range tr.Calls {
		got = append(got, c.Outside)
	}
	if want := []string{"both", "reply", "call", "both", "both"}; !slices.Equal(got, want) {
		t.Errorf("outside %q, want %q", got, want)
	}
}

func TestCompareExtract(t *testing.T) {
	const hello = "5d41402abc4b2a76b9719d911017c592"
	good := ManifestFile{Path: "d/hello", Size: 5, Covered: 5, MD5: hello, Complete: true}
	for _, c := range []struct {
		name                         string
		list                         []ManifestFile
		files                        map[string]string
		env                          string
		compared, mismatch, explains int
	}{
		{"good", []ManifestFile{good}, map[string]string{"d/hello": "hello"}, "", 1, 0, 0},
		{"below the export's name", []ManifestFile{{Path: "/export/d/hello", Size: 5, Covered: 5, MD5: hello, Complete: true}},
			map[string]string{"export/d/hello": "hello"}, "", 1, 0, 0},
		{"incomplete", []ManifestFile{{Path: "d/hello", Size: 5, Covered: 4}}, nil, "", 0, 1, 0},
		{"incomplete in mid-stream", []ManifestFile{{Path: "d/hello", Size: 5, Covered: 4}}, nil, "CAPTURE_AT=midstream", 0, 0, 1},
		{"covered too much", []ManifestFile{good, {Path: "x", Size: 5, Covered: 6}}, map[string]string{"d/hello": "hello"}, "", 1, 1, 0},
		{"other contents", []ManifestFile{{Path: "d/hello", Size: 5, Covered: 5, MD5: "8b1a9953c4611296a827abf8c47804d7", Complete: true}},
			map[string]string{"d/hello": "Hello"}, "", 0, 1, 0},
		{"manifest lies", []ManifestFile{good}, map[string]string{"d/hello": "Hello"}, "", 0, 2, 0},
		{"removed file", []ManifestFile{good, {Path: "gone", Size: 1, Covered: 1, MD5: "0cc175b9c0f1b6a831c399e269772661", Complete: true}},
			map[string]string{"d/hello": "hello", "gone": "a"}, "", 1, 0, 1},
		{"truncated file", []ManifestFile{good, {Path: "d/small", Size: 1, Covered: 1, MD5: "0cc175b9c0f1b6a831c399e269772661", Complete: true}},
			map[string]string{"d/hello": "hello", "d/small": "a"}, "", 1, 0, 1},
		{"encrypted", nil, nil, "SEC=krb5p", 0, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			var manifest bytes.Buffer
			for _, m := range c.list {
				if err := json.NewEncoder(&manifest).Encode(m); err != nil {
					t.Fatal(err)
				}
			}
			c.files = mapsClone(c.files)
			c.files["manifest.ndjson"] = manifest.String()
			for name, content := range c.files {
				p := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			r := new(Report)
			if err := CompareExtract(fixture(t, map[string]string{"scenario.env": c.env}), dir, r); err != nil {
				t.Fatal(err)
			}
			if r.Files != c.compared || len(r.Mismatches) != c.mismatch || len(r.Explained) != c.explains {
				t.Errorf("%d files agree, mismatches %v, explained %v", r.Files, r.Mismatches, r.Explained)
			}
		})
	}
}

func mapsClone(m map[string]string) map[string]string {
	out := make(map[string]string)
	for k, v := range m {
		out[k] = v
	}
	return out
}

func TestReportPrint(t *testing.T) {
	txs := transactions()
	txs[2].CallBytes = 1
	var b strings.Builder
	Compare(fixture(t, nil), txs, Options{}).Print(&b, false)
	for _, want := range []string{"small: 5 RPCs over RDMA", "xid=00000003 call_bytes: kernel 5196, decoder 1", "explained: 1 × missing"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in:\n%s", want, b.String())
		}
	}
}
