package transaction

import (
	"regexp"
	"strings"
	"testing"
)

// TestNoteTexts makes sure that each kind has a code and a sentence of its own,
// and that a sentence asks only for arguments that exist.
func TestNoteTexts(t *testing.T) {
	code := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	verb := regexp.MustCompile(`%.?`)
	seen := map[string]NoteKind{}
	n := 0
	for k := range NoteKinds() {
		n++
		if !code.MatchString(k.Code()) || k.String() != k.Code() {
			t.Errorf("kind %d: code %q, %q", k, k.Code(), k.String())
		}
		for _, s := range []string{k.Code(), noteTexts[k].format} {
			if other, ok := seen[s]; ok || s == "" {
				t.Errorf("kinds %d and %d: both %q", other, k, s)
			}
			seen[s] = k
		}
		for _, v := range verb.FindAllString(noteTexts[k].format, -1) {
			if len(v) != 2 || !strings.Contains("noswtp", v[1:]) {
				t.Errorf("%v: no argument is %q", k, v)
			}
		}
		full := Note{Kind: k, Part: PartReply, Window: 3, N: 4, Of: 5, Why: "why"}
		if s := full.String(); s != string(full.Append(nil)) || s == "" || strings.Contains(s, "%") {
			t.Errorf("%v: %q", k, s)
		}
	}
	if n != int(endOfKinds)-1 {
		t.Errorf("%d of %d kinds", n, endOfKinds-1)
	}
	for _, k := range []NoteKind{0, endOfKinds, 255} {
		if x := (Note{Kind: k}); x.String() != "" || k.Code() != "" || len(x.Append(nil)) > 0 {
			t.Errorf("kind %d: %q, %q", k, k.Code(), x)
		}
	}
	if s := NotePart(200).String(); s != "" {
		t.Errorf("%q", s)
	}
}

// The wording appears in ndjson, which scripts may read.
func TestNoteWording(t *testing.T) {
	for _, c := range []struct {
		note Note
		want string
	}{
		{Note{Kind: XIDReused}, "XID used again for another call"},
		{Note{Kind: ResentFrom, N: 12}, "XID sent again after reconnect: first on connection 12"},
		{Note{Kind: ReplyStampedEarlier, N: 1500}, "reply stamped 1.5µs before its call: no latency"},
		{Note{Kind: ReplyStampedEarlier, N: 1<<64 - 1}, "reply stamped -1ns before its call: no latency"},
		{Note{Kind: ConnectionEnded, Why: "100%n of it"}, "no reply before the connection ended: 100%n of it"},
		{Note{Kind: MessageCut, Part: PartCall, N: 96, Of: 4096}, "call cut by the capture: 96 of 4096 bytes"},
		{Note{Kind: ChunkIncomplete, Part: PartReplyPositionZero, N: 0, Of: 9}, "reply's Position-Zero Read chunk: 0 of 9 bytes captured"},
		{Note{Kind: ReadsUnplaced, Part: PartReadList, N: 1, Of: 2}, "Read list: 1 of 2 bytes captured: Read Responses came that could not be placed"},
		{Note{Kind: KRB5Body, Part: PartReply, Why: "wrong checksum"}, "krb5: body of the reply: wrong checksum"},
		{
			Note{Kind: KRB5SequenceBelowWindow, N: 1, Window: 128, Of: 300},
			"krb5: sequence number 1 is below the window of the context (128 below 300): the server does not answer",
		},
	} {
		if got := c.note.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

// TestNoteOnce adds notes: each once, none beyond the limit, all accounted for,
// and without memory of their own in a transaction that is used again.
func TestNoteOnce(t *testing.T) {
	tx := new(Transaction)
	tx.note(XIDReused)
	tx.Note(Note{Kind: ResentOn, N: 1})
	tx.note(XIDReused)
	tx.Note(Note{Kind: ResentOn, N: 1})
	if len(tx.Notes) != 2 {
		t.Errorf("%v", tx.Notes)
	}
	for i := range uint64(1000) {
		tx.Note(Note{Kind: ConnectionEnded, N: i, Why: "ten bytes."})
	}
	if want := cap(tx.Notes)*noteSize + 10*(maxNotes-2); len(tx.Notes) != maxNotes || tx.noted != want {
		t.Errorf("%d notes, %d bytes, want %d and %d", len(tx.Notes), tx.noted, maxNotes, want)
	}
	if n := testing.AllocsPerRun(100, func() {
		tx.Release()
		for i := range uint64(2 * maxNotes) {
			tx.Note(Note{Kind: ChunkIncomplete, Part: PartReplyChunk, N: i, Of: 99})
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	b := make([]byte, 0, 1<<10)
	if n := testing.AllocsPerRun(100, func() {
		_ = tx.Notes[0].Append(b)
		_ = Note{Kind: BeyondSegment}.String()
	}); n != 0 {
		t.Errorf("%v allocations for the text", n)
	}
}
