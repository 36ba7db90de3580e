package plan

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

var noteKinds = []NoteKind{
	NoteChanged, NoteReplaced, NoteAppeared, NoteLinked, NoteMoved, NoteNoTarget, NoteElsewhere, NoteNoDirectory, NoteMadeUp, NotePending, NoteOther,
}

// TestNotes: each note has words of its own, which lead back to it.
func TestNotes(t *testing.T) {
	foreign := 0
	for _, k := range noteKinds {
		n := Note{Kind: k}
		if k == NoteElsewhere || k == NoteOther {
			n.Name = "x\u2028 y"
		}
		if got := noteOf(n.String()); got != n {
			t.Errorf("%+v is %q, which is %+v", n, n, got)
		}
		if n.Foreign() != strings.Contains(n.String(), "somebody else's hand") {
			t.Errorf("%+v: %q, by others: %v", n, n, n.Foreign())
		}
		if n.Foreign() {
			foreign++
		}
	}
	if foreign != 5 {
		t.Errorf("%d notes on what others did", foreign)
	}
}

// TestNotesOfPlans: a plan has notes as codes and in words; one of an earlier
// version only in words.
func TestNotesOfPlans(t *testing.T) {
	list := []Note{{Kind: NoteMoved}, {Kind: NoteElsewhere, Name: "f"}, {Kind: NoteOther, Name: "something else"}}
	tables := Tables{
		Header: Header{Format: Format}, Servers: []Server{{ID: 1}}, Objects: []Object{{ID: 1, Server: 1, Notes: list}},
	}
	var b bytes.Buffer
	w := NewWriter(&b)
	if err := w.Tables(&tables); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	const words = `"notes":["moved by somebody else's hand",`
	codes, _, ok := strings.Cut(text[max(0, strings.Index(text, `"note_codes":`)):], words)
	if !ok {
		t.Fatalf("no codes or words in %s", text)
	}
	for name, in := range map[string]string{
		"both": text, "codes": strings.Replace(text, words, `"nothing":[`, 1), "words": strings.Replace(text, codes, "", 1),
	} {
		r, err := NewReader(strings.NewReader(in))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if o := &r.Tables.Objects[0]; !slices.Equal(o.Notes, list) || o.Sentences != nil {
			t.Errorf("%s: %+v %q", name, o.Notes, o.Sentences)
		}
	}
}
