package plan

import "strings"

// NoteKind says what is strange about an object.
type NoteKind string

// Kinds of notes. The first group describes changes by a client that is not in the
// capture.
const (
	NoteChanged  NoteKind = "changed"  // its content or size
	NoteReplaced NoteKind = "replaced" // it took the place of another file
	NoteAppeared NoteKind = "appeared" // it was not there at first
	NoteLinked   NoteKind = "linked"   // it got another name
	NoteMoved    NoteKind = "moved"    // a directory that was elsewhere

	NoteNoTarget    NoteKind = "no_target"    // the target of a symlink is made up
	NoteElsewhere   NoteKind = "elsewhere"    // prepared elsewhere: Name was found in a directory that an op makes
	NoteNoDirectory NoteKind = "no_directory" // created, where is not known
	NoteMadeUp      NoteKind = "made_up"      // a base, since no directory was seen
	NotePending     NoteKind = "pending"      // prepared, although a call without a reply may have made it

	// NoteOther is a sentence that this version does not know: it is the Name.
	NoteOther NoteKind = "other"
)

// Note is what is strange about an object.
type Note struct {
	Kind NoteKind `json:"kind"`
	Name string   `json:"name,omitempty"`
}

// Foreign reports whether a client that is not in the capture changed the object.
func (n Note) Foreign() bool {
	switch n.Kind {
	case NoteChanged, NoteReplaced, NoteAppeared, NoteLinked, NoteMoved:
		return true
	}
	return false
}

// understood takes the notes of a plan that has them in words only.
func (o *Object) understood() {
	if len(o.Notes) == 0 {
		for _, s := range o.Sentences {
			o.Notes = append(o.Notes, noteOf(s))
		}
	}
	o.Sentences = nil
}

// noteOf is the note that a sentence expresses.
func noteOf(sentence string) Note {
	for k, s := range sentences {
		if s == sentence {
			return Note{Kind: k}
		}
	}
	if name, ok := strings.CutPrefix(sentence, elsewhereBefore); ok {
		if name, ok = strings.CutSuffix(name, elsewhereAfter); ok {
			return Note{Kind: NoteElsewhere, Name: name}
		}
	}
	return Note{Kind: NoteOther, Name: sentence}
}

// worded is the object as a Writer writes it, with its notes in words as well.
func (o *Object) worded() *Object {
	if len(o.Notes) == 0 && len(o.Sentences) == 0 {
		return o
	}
	x := *o
	x.Sentences = nil
	for _, n := range o.Notes {
		x.Sentences = append(x.Sentences, n.String())
	}
	return &x
}

// String is the note in words.
func (n Note) String() string {
	switch n.Kind {
	case NoteElsewhere:
		return elsewhereBefore + n.Name + elsewhereAfter
	case NoteOther:
		return n.Name
	}
	if s := sentences[n.Kind]; s != "" {
		return s
	}
	return string(n.Kind)
}

// sentences are the notes without a name in words.
var sentences = map[NoteKind]string{
	NoteChanged:     "changed by somebody else's hand",
	NoteReplaced:    "took the place of another file, by somebody else's hand",
	NoteAppeared:    "appeared while the workload ran, by somebody else's hand",
	NoteLinked:      "got another name by somebody else's hand",
	NoteMoved:       "moved by somebody else's hand",
	NoteNoTarget:    "the target of the symlink was not seen: made up",
	NoteNoDirectory: "created, by a call whose directory is not known",
	NoteMadeUp:      "made up: no directory was seen",
	NotePending:     "may have been made by a call whose reply is missing; prepared, since it was used before its name was seen",
}

const elsewhereBefore, elsewhereAfter = "found as ", " in a directory that an op makes: prepared elsewhere"
