package nfs4

import "github.com/rpcrdma/toolkit/decode/xdr"

// Notify4 is a notify4: a set of notifications and, in one opaque, their contents in the order of
// the bits (RFC 5661, section 20.4). The meaning of a bit depends on the operation.
type Notify4 struct {
	Mask Bitmap4
	Vals []byte
}

// Decode refills n.
func (n *Notify4) Decode(r *xdr.Reader) {
	n.Mask.Decode(r)
	r.Field("notify_mask")
	n.Vals = r.Opaque(0)
	r.Field("notify_vals")
}

// Skip passes over notifications.
func (*Notify4) Skip(r *xdr.Reader, off uint) uint {
	return r.SkipOpaque(r.SkipArray(off, 0, 4), 0)
}

// Append appends n in XDR.
func (n *Notify4) Append(b []byte) []byte {
	b = n.Mask.Append(b)
	return xdr.AppendOpaque(b, n.Vals)
}

// EncodedSize is the number of bytes that Append appends.
func (n *Notify4) EncodedSize() int { return n.Mask.EncodedSize() + xdr.SizeOpaque(len(n.Vals)) }

// items calls do for each notification that can be read, and returns the bytes
// after the last of them.
func (n *Notify4) items(types []bodyType, do func(i int, m xdr.Message, typ string)) []byte {
	var r xdr.Reader
	r.Reset(n.Vals, len(n.Vals))
	for i := n.Mask.Next(0); i >= 0; i = n.Mask.Next(i + 1) {
		if i >= len(types) || types[i].make == nil {
			break
		}
		at := r.Offset()
		m := types[i].make()
		if m.Decode(&r); r.Failed() {
			return n.Vals[at:]
		}
		do(i, m, types[i].name)
	}
	return r.Rest()
}

func redactNotify(x *xdr.Redactor, types []bodyType) {
	mask := Bitmap4(x.Words())
	x.Nested(func(x *xdr.Redactor) {
		for i := mask.Next(0); i >= 0 && !x.Failed(); i = mask.Next(i + 1) {
			if i >= len(types) || types[i].make == nil {
				x.Ignore()
				return
			}
			types[i].make().(xdr.Redactable).Redact(x)
		}
	})
}

func (n *Notify4) walk(v xdr.Visitor, types []bodyType) {
	rest := n.items(types, func(i int, m xdr.Message, typ string) {
		v.Begin("notify_vals", typ, i)
		m.Walk(v)
		v.End()
	})
	if len(rest) > 0 {
		v.Bytes("notify_vals", rest)
	}
}

func (n *Notify4) contents(types []bodyType) (all []xdr.Message) {
	n.items(types, func(_ int, m xdr.Message, _ string) { all = append(all, m) })
	return all
}

// DirNotify4 is a notify4 of CB_NOTIFY: changes of a directory.
type DirNotify4 struct{ Notify4 }

var dirNotifications = []bodyType{
	NOTIFY4_CHANGE_CHILD_ATTRS:     {"notify_attr4", func() xdr.Message { return new(NotifyAttr4) }},
	NOTIFY4_CHANGE_DIR_ATTRS:       {"notify_attr4", func() xdr.Message { return new(NotifyAttr4) }},
	NOTIFY4_REMOVE_ENTRY:           {"notify_remove4", func() xdr.Message { return new(NotifyRemove4) }},
	NOTIFY4_ADD_ENTRY:              {"notify_add4", func() xdr.Message { return new(NotifyAdd4) }},
	NOTIFY4_RENAME_ENTRY:           {"notify_rename4", func() xdr.Message { return new(NotifyRename4) }},
	NOTIFY4_CHANGE_COOKIE_VERIFIER: {"notify_verifier4", func() xdr.Message { return new(NotifyVerifier4) }},
}

// Contents decodes the notifications, in the order of the mask's bits, as far
// as they can be read: *NotifyAttr4, *NotifyRemove4, *NotifyAdd4,
// *NotifyRename4, *NotifyVerifier4.
func (n *DirNotify4) Contents() []xdr.Message { return n.contents(dirNotifications) }

// Redact copies notifications.
func (*DirNotify4) Redact(x *xdr.Redactor) { redactNotify(x, dirNotifications) }

// Walk visits the mask and the notifications. The index of each is its
// notify_type4.
func (n *DirNotify4) Walk(v xdr.Visitor) {
	NotifyBitmap4{n.Mask}.WalkField(v, "notify_mask")
	n.walk(v, dirNotifications)
}

// DeviceidNotify4 is a notify4 of CB_NOTIFY_DEVICEID.
type DeviceidNotify4 struct{ Notify4 }

var deviceidNotifications = []bodyType{
	NOTIFY_DEVICEID4_CHANGE: {"notify_deviceid_change4", func() xdr.Message { return new(NotifyDeviceidChange4) }},
	NOTIFY_DEVICEID4_DELETE: {"notify_deviceid_delete4", func() xdr.Message { return new(NotifyDeviceidDelete4) }},
}

// Contents decodes the notifications, in the order of the mask's bits, as far
// as they can be read: *NotifyDeviceidChange4, *NotifyDeviceidDelete4.
func (n *DeviceidNotify4) Contents() []xdr.Message { return n.contents(deviceidNotifications) }

// Redact copies notifications.
func (*DeviceidNotify4) Redact(x *xdr.Redactor) { redactNotify(x, deviceidNotifications) }

// Walk visits the mask and the notifications. The index of each is its
// notify_deviceid_type4.
func (n *DeviceidNotify4) Walk(v xdr.Visitor) {
	DeviceidNotifyBitmap4{n.Mask}.WalkField(v, "notify_mask")
	n.walk(v, deviceidNotifications)
}
