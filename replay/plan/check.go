package plan

import (
	"bytes"
	"errors"
	"fmt"
)

// check makes sure that every reference in the tables leads to something.
func (t *Tables) check() error {
	for i := range t.Connections {
		if c := &t.Connections[i]; !in(t.Servers, c.Server) {
			return fmt.Errorf("connection %d: %w", c.ID, bad("server", c.Server))
		}
	}
	for i := range t.Clients {
		if c := &t.Clients[i]; !in(t.Servers, c.Server) {
			return fmt.Errorf("client %d: %w", c.ID, bad("server", c.Server))
		}
	}
	for i := range t.Sessions {
		if s := &t.Sessions[i]; !in(t.Clients, s.Client) {
			return fmt.Errorf("session %d: %w", s.ID, bad("client", s.Client))
		}
	}
	for i := range t.Owners {
		if o := &t.Owners[i]; !o.nlm() && !in(t.Clients, o.Client) {
			return fmt.Errorf("owner %d: %w", o.ID, bad("client", o.Client))
		}
	}
	for i := range t.States {
		s := &t.States[i]
		switch {
		case !may(t.Clients, s.Client):
			return fmt.Errorf("state %d: %w", s.ID, bad("client", s.Client))
		case !may(t.Objects, s.Object):
			return fmt.Errorf("state %d: %w", s.ID, bad("object", s.Object))
		case !t.owned(s.Owner):
			return fmt.Errorf("state %d: %w", s.ID, bad("owner", s.Owner))
		}
	}
	for i := range t.Objects {
		o := &t.Objects[i]
		switch {
		case !in(t.Servers, o.Server):
			return fmt.Errorf("object %d: %w", o.ID, bad("server", o.Server))
		case !may(t.Objects, o.Parent):
			return fmt.Errorf("object %d: %w", o.ID, bad("parent", o.Parent))
		}
		if (o.Parent != 0 || o.Name != "" || o.NameBytes != nil) && notComponent(bytesOf(o.Name, o.NameBytes)) {
			return fmt.Errorf("object %d: its name is not a component of a path", o.ID)
		}
		for _, l := range o.Links {
			switch {
			case !in(t.Objects, l.Parent):
				return fmt.Errorf("object %d: %w", o.ID, bad("parent of a link", l.Parent))
			case notComponent(bytesOf(l.Name, l.NameBytes)):
				return fmt.Errorf("object %d: the name of a link is not a component of a path", o.ID)
			}
		}
	}
	if err := t.Header.Facts.check(t); err != nil {
		return err
	}
	return t.circle()
}

// check makes sure that the facts lead to something.
func (f *Facts) check(t *Tables) error {
	if f == nil {
		return nil
	}
	for _, a := range f.Above {
		if !in(t.Objects, a.Object) || !in(t.Objects, a.Parent) {
			return fmt.Errorf("facts: object %d above %d %w", a.Parent, a.Object, ErrReference)
		}
	}
	for _, e := range f.Examples {
		switch {
		case !may(t.Clients, e.Client):
			return fmt.Errorf("facts: %w", bad("client", e.Client))
		case !in(t.Connections, e.Connection):
			return fmt.Errorf("facts: %w", bad("connection", e.Connection))
		case t.Connections[e.Connection-1].Ops <= 0:
			return fmt.Errorf("facts: a call of client %d over connection %d, which has none", e.Client, e.Connection)
		case !in(t.Credentials, e.Credential):
			return fmt.Errorf("facts: %w", bad("credential", e.Credential))
		}
	}
	return nil
}

// nlm reports an owner that no client of NFSv4 has.
func (o *Owner) nlm() bool { return o.Kind == OwnerNLM && o.Client == 0 }

// owned reports whether a state may have that owner, or none.
func (t *Tables) owned(id int) bool {
	return id == 0 || in(t.Owners, id) && !t.Owners[id-1].nlm()
}

// circle refuses directories that contain themselves.
func (t *Tables) circle() error {
	good := make([]bool, len(t.Objects)+1)
	good[0] = true
	var way []int
	on := make([]bool, len(t.Objects)+1)
	for i := range t.Objects {
		way = way[:0]
		at := i + 1
		for !good[at] {
			if on[at] {
				return fmt.Errorf("object %d is below itself", at)
			}
			on[at] = true
			way = append(way, at)
			at = t.Objects[at-1].Parent
		}
		for _, w := range way {
			good[w], on[w] = true, false
		}
	}
	return nil
}

// check makes sure that every reference in an op leads to something.
func (o *Op) check(t *Tables) error {
	switch {
	case !in(t.Connections, o.Connection):
		return bad("connection", o.Connection)
	case !in(t.Credentials, o.Credential):
		return bad("credential", o.Credential)
	case o.After < 0 || o.After >= o.ID:
		return fmt.Errorf("after op %d, which does not come before it", o.After)
	}
	if o.Before < 0 {
		return fmt.Errorf("it was sent for the first time %d ns after it was sent", -o.Before)
	}
	for _, d := range o.Deps {
		if d.Op < 1 || d.Op >= o.ID {
			return fmt.Errorf("depends on op %d, which does not come before it", d.Op)
		}
	}
	for i := range o.Args {
		if err := o.Args[i].check(o, t); err != nil {
			return err
		}
	}
	n := 1
	if c := o.Compound; c != nil {
		n = len(c.Ops)
		for i := range c.Ops {
			for j := range c.Ops[i].Args {
				if err := c.Ops[i].Args[j].check(o, t); err != nil {
					return err
				}
			}
		}
	}
	for i := range o.Binds {
		b := &o.Binds[i]
		if b.At < 0 || b.At >= n {
			return fmt.Errorf("a result of operation %d, of %d", b.At, n)
		}
		if !t.has(b.Kind, b.Ref) {
			return bad(string(b.Kind), b.Ref)
		}
	}
	return nil
}

func (f *Field) check(o *Op, t *Tables) error {
	switch f.Kind {
	case FieldU32:
		if f.Value > 0xffffffff {
			return fmt.Errorf("field %s: %d does not fit into 32 bits", f.N, f.Value)
		}
	case FieldU64, FieldText, FieldCallback:
	case FieldRaw:
		if len(f.Bytes)%4 != 0 {
			return fmt.Errorf("field %s: %d bytes are no XDR", f.N, len(f.Bytes))
		}
	case FieldState0:
		if _, ok := special[f.Text]; !ok {
			return fmt.Errorf("field %s: unknown special state id %q", f.N, f.Text)
		}
	case FieldCookie, FieldCookieVerf:
		if f.Op < 1 || f.Op >= o.ID {
			return fmt.Errorf("field %s: op %d does not come before it", f.N, f.Op)
		}
	case FieldData:
		d := f.Data
		switch {
		case d == nil:
			return fmt.Errorf("field %s: no data", f.N)
		case d.At < 0 || !may(t.Objects, d.Object):
			return fmt.Errorf("field %s: %w", f.N, bad("object", d.Object))
		}
	default:
		switch f.Kind {
		case FieldName, FieldHandle, FieldState, FieldClient, FieldVerifier, FieldOwnerID, FieldConfirm, FieldCreateSeq,
			FieldSession, FieldSequence, FieldSlot, FieldHighest, FieldSeqid, FieldCtime, FieldLockHost, FieldLockOwner, FieldSvid:
		default:
			return fmt.Errorf("%w %q", ErrField, f.Kind)
		}
		if !t.has(f.Kind, f.Ref) {
			return fmt.Errorf("field %s: %w", f.N, bad(string(f.Kind), f.Ref))
		}
	}
	return nil
}

// has reports whether the symbol exists that a field of that kind refers to.
func (t *Tables) has(k FieldKind, ref int) bool {
	switch k {
	case FieldHandle, FieldCtime:
		return in(t.Objects, ref)
	case FieldName:
		return may(t.Objects, ref)
	case FieldState:
		return in(t.States, ref)
	case FieldClient, FieldVerifier, FieldOwnerID, FieldConfirm, FieldCreateSeq:
		return in(t.Clients, ref)
	case FieldSession, FieldSequence, FieldSlot, FieldHighest:
		return in(t.Sessions, ref)
	case FieldSeqid:
		return in(t.Owners, ref) && !t.Owners[ref-1].nlm()
	case FieldLockHost, FieldLockOwner, FieldSvid:
		return in(t.Owners, ref) && t.Owners[ref-1].nlm()
	}
	return false
}

// ErrReference says that something leads to what is not in the plan.
var ErrReference = errors.New("refers to nothing")

func in[T any](list []T, id int) bool { return id >= 1 && id <= len(list) }

// may is in, or no reference at all.
func may[T any](list []T, id int) bool { return id == 0 || in(list, id) }

func bad(what string, id int) error { return fmt.Errorf("%s %d %w", what, id, ErrReference) }

// notComponent reports names that are no components of a path: they must not make
// it lead elsewhere.
func notComponent(name []byte) bool {
	return len(name) == 0 || string(name) == "." || string(name) == ".." || bytes.ContainsAny(name, "/\x00")
}

// bytesOf is a text that is bytes if it is not UTF-8.
func bytesOf(text string, b []byte) []byte {
	if b != nil {
		return b
	}
	return []byte(text)
}
