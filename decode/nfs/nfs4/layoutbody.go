package nfs4

import "github.com/rpcrdma/toolkit/decode/xdr"

// TypedBody is an opaque whose content depends on a layout type.
type TypedBody struct {
	Type Layouttype4
	Body []byte
}

// Decode refills t.
func (t *TypedBody) Decode(r *xdr.Reader) {
	t.Type = Layouttype4(r.Uint32())
	r.Field("type")
	t.Body = r.Opaque(0)
	r.Field("body")
}

// Skip passes over a body.
func (*TypedBody) Skip(r *xdr.Reader, off uint) uint { return r.SkipOpaque(off+4, 0) }

// Append appends t in XDR.
func (t *TypedBody) Append(b []byte) []byte {
	b = xdr.AppendUint32(b, uint32(t.Type))
	return xdr.AppendOpaque(b, t.Body)
}

// EncodedSize is the number of bytes that Append appends.
func (t *TypedBody) EncodedSize() int { return 4 + xdr.SizeOpaque(len(t.Body)) }

// bodyType is what a body of one layout type holds.
type bodyType struct {
	name string
	make func() xdr.Message
}

// bodyTypes holds the types of one kind of body, by layout type. Bodies that are not
// here are empty by the protocol, or opaque (objects, RFC 5664).
type bodyTypes map[Layouttype4]bodyType

var (
	layoutBodies = bodyTypes{
		LAYOUT4_NFSV4_1_FILES: {"nfsv4_1_file_layout4", func() xdr.Message { return new(Nfsv41FileLayout4) }},
		LAYOUT4_BLOCK_VOLUME:  {"pnfs_block_layout4", func() xdr.Message { return new(PnfsBlockLayout4) }},
		LAYOUT4_FLEX_FILES:    {"ff_layout4", func() xdr.Message { return new(FfLayout4) }},
		LAYOUT4_SCSI:          {"pnfs_scsi_layout4", func() xdr.Message { return new(PnfsScsiLayout4) }},
	}
	hintBodies = bodyTypes{
		LAYOUT4_NFSV4_1_FILES: {"nfsv4_1_file_layouthint4", func() xdr.Message { return new(Nfsv41FileLayouthint4) }},
		LAYOUT4_BLOCK_VOLUME:  {"pnfs_block_layouthint4", func() xdr.Message { return new(PnfsBlockLayouthint4) }},
		LAYOUT4_FLEX_FILES:    {"ff_layouthint4", func() xdr.Message { return new(FfLayouthint4) }},
		LAYOUT4_SCSI:          {"pnfs_scsi_layouthint4", func() xdr.Message { return new(PnfsScsiLayouthint4) }},
	}
	deviceBodies = bodyTypes{
		LAYOUT4_NFSV4_1_FILES: {"nfsv4_1_file_layout_ds_addr4", func() xdr.Message { return new(Nfsv41FileLayoutDsAddr4) }},
		LAYOUT4_BLOCK_VOLUME:  {"pnfs_block_deviceaddr4", func() xdr.Message { return new(PnfsBlockDeviceaddr4) }},
		LAYOUT4_FLEX_FILES:    {"ff_device_addr4", func() xdr.Message { return new(FfDeviceAddr4) }},
		LAYOUT4_SCSI:          {"pnfs_scsi_deviceaddr4", func() xdr.Message { return new(PnfsScsiDeviceaddr4) }},
	}
	// A flexible-files update travels in LAYOUTSTATS only (RFC 8435, section 9.1).
	updateBodies = bodyTypes{
		LAYOUT4_BLOCK_VOLUME: {"pnfs_block_layoutupdate4", func() xdr.Message { return new(PnfsBlockLayoutupdate4) }},
		LAYOUT4_FLEX_FILES:   {"ff_layoutupdate4", func() xdr.Message { return new(FfLayoutupdate4) }},
		LAYOUT4_SCSI:         {"pnfs_scsi_layoutupdate4", func() xdr.Message { return new(PnfsScsiLayoutupdate4) }},
	}
	returnBodies = bodyTypes{
		LAYOUT4_FLEX_FILES: {"ff_layoutreturn4", func() xdr.Message { return new(FfLayoutreturn4) }},
	}
)

// decode returns the content of a body and its type's name, or nil if the body
// is not exactly one item of that type.
func (t bodyTypes) decode(typ Layouttype4, body []byte) (xdr.Message, string) {
	b, ok := t[typ]
	if !ok {
		return nil, ""
	}
	m := b.make()
	var r xdr.Reader
	r.Reset(body, len(body))
	m.Decode(&r)
	if r.Failed() || r.Remaining() > 0 {
		return nil, ""
	}
	return m, b.name
}

// redact copies a body, if it is known what it holds.
func (t bodyTypes) redact(x *xdr.Redactor, typ Layouttype4) {
	x.Nested(func(x *xdr.Redactor) {
		if b, ok := t[typ]; ok {
			b.make().(xdr.Redactable).Redact(x)
		} else {
			x.Ignore()
		}
	})
}

// walk visits a body: its content if it can be decoded, otherwise its bytes.
func (t bodyTypes) walk(v xdr.Visitor, field string, typ Layouttype4, body []byte) {
	m, name := t.decode(typ, body)
	if m == nil {
		v.Bytes(field, body)
		return
	}
	v.Begin(field, name, -1)
	m.Walk(v)
	v.End()
}

// LayoutContent4 is the content of a layout: a *Nfsv41FileLayout4,
// *PnfsBlockLayout4, *PnfsScsiLayout4 or *FfLayout4.
type LayoutContent4 struct{ TypedBody }

// Content decodes the body, into its own memory except for opaques and texts. It is nil if the
// type is unknown, or the body is malformed.
func (t *LayoutContent4) Content() xdr.Message {
	m, _ := layoutBodies.decode(t.Type, t.Body)
	return m
}

// Redact copies the type and the body.
func (*LayoutContent4) Redact(x *xdr.Redactor) { layoutBodies.redact(x, Layouttype4(x.Word())) }

// Walk visits the type and the body.
func (t *LayoutContent4) Walk(v xdr.Visitor) {
	v.Enum("loc_type", uint32(t.Type), t.Type.Symbol())
	layoutBodies.walk(v, "loc_body", t.Type, t.Body)
}

// Layouthint4 is a hint for new layouts: a *Nfsv41FileLayouthint4,
// *PnfsBlockLayouthint4, *PnfsScsiLayouthint4 or *FfLayouthint4.
type Layouthint4 struct{ TypedBody }

// Content decodes the body; see LayoutContent4.
func (t *Layouthint4) Content() xdr.Message {
	m, _ := hintBodies.decode(t.Type, t.Body)
	return m
}

// Redact copies the type and the body.
func (*Layouthint4) Redact(x *xdr.Redactor) { hintBodies.redact(x, Layouttype4(x.Word())) }

// Walk visits the type and the body.
func (t *Layouthint4) Walk(v xdr.Visitor) {
	v.Enum("loh_type", uint32(t.Type), t.Type.Symbol())
	hintBodies.walk(v, "loh_body", t.Type, t.Body)
}

// DeviceAddr4 is the address of a device: a *Nfsv41FileLayoutDsAddr4,
// *PnfsBlockDeviceaddr4, *PnfsScsiDeviceaddr4 or *FfDeviceAddr4.
type DeviceAddr4 struct{ TypedBody }

// Content decodes the body; see LayoutContent4.
func (t *DeviceAddr4) Content() xdr.Message {
	m, _ := deviceBodies.decode(t.Type, t.Body)
	return m
}

// Redact copies the type and the body.
func (*DeviceAddr4) Redact(x *xdr.Redactor) { deviceBodies.redact(x, Layouttype4(x.Word())) }

// Walk visits the type and the body.
func (t *DeviceAddr4) Walk(v xdr.Visitor) {
	v.Enum("da_layout_type", uint32(t.Type), t.Type.Symbol())
	deviceBodies.walk(v, "da_addr_body", t.Type, t.Body)
}

// Layoutupdate4 is what LAYOUTCOMMIT and LAYOUTSTATS report about a layout: a
// *PnfsBlockLayoutupdate4, *PnfsScsiLayoutupdate4 or *FfLayoutupdate4. Often the body is empty.
type Layoutupdate4 struct{ TypedBody }

// Content decodes the body; see LayoutContent4.
func (t *Layoutupdate4) Content() xdr.Message {
	m, _ := updateBodies.decode(t.Type, t.Body)
	return m
}

// Redact copies the type and the body.
func (*Layoutupdate4) Redact(x *xdr.Redactor) { updateBodies.redact(x, Layouttype4(x.Word())) }

// Walk visits the type and the body.
func (t *Layoutupdate4) Walk(v xdr.Visitor) {
	v.Enum("lou_type", uint32(t.Type), t.Type.Symbol())
	updateBodies.walk(v, "lou_body", t.Type, t.Body)
}

// LAYOUTRETURN4args are the arguments of LAYOUTRETURN. They are written by hand since the layout
// type is two levels above the body that it governs.
type LAYOUTRETURN4args struct {
	LoraReclaim    bool
	LoraLayoutType Layouttype4
	LoraIomode     Layoutiomode4
	LrReturntype   LayoutreturnType4

	// With LAYOUTRETURN4_FILE only.
	LrfOffset  uint64
	LrfLength  uint64
	LrfStateid Stateid4
	LrfBody    []byte
}

// Content decodes the body: a *FfLayoutreturn4, or nil.
func (t *LAYOUTRETURN4args) Content() xdr.Message {
	m, _ := returnBodies.decode(t.LoraLayoutType, t.LrfBody)
	return m
}

// Decode refills t.
func (t *LAYOUTRETURN4args) Decode(r *xdr.Reader) {
	t.LoraReclaim = r.Bool()
	r.Field("lora_reclaim")
	t.LoraLayoutType = Layouttype4(r.Uint32())
	r.Field("lora_layout_type")
	t.LoraIomode = Layoutiomode4(r.Uint32())
	r.Field("lora_iomode")
	t.LrReturntype = LayoutreturnType4(r.Uint32())
	r.Field("lr_returntype")
	if t.LrReturntype != LAYOUTRETURN4_FILE {
		return
	}
	t.LrfOffset = r.Uint64()
	r.Field("lrf_offset")
	t.LrfLength = r.Uint64()
	r.Field("lrf_length")
	t.LrfStateid.Decode(r)
	t.LrfBody = r.Opaque(0)
	r.Field("lrf_body")
}

// Skip passes over arguments of LAYOUTRETURN.
func (*LAYOUTRETURN4args) Skip(r *xdr.Reader, off uint) uint {
	kind, off := r.SkipWord(off + 12)
	if LayoutreturnType4(kind) != LAYOUTRETURN4_FILE {
		return off
	}
	return r.SkipOpaque((*Stateid4)(nil).Skip(r, off+16), 0)
}

// Redact copies arguments of LAYOUTRETURN.
func (*LAYOUTRETURN4args) Redact(x *xdr.Redactor) {
	x.Numbers(4)
	typ := Layouttype4(x.Word())
	x.Numbers(4)
	if LayoutreturnType4(x.Word()) != LAYOUTRETURN4_FILE {
		return
	}
	x.Numbers(16)
	(*Stateid4)(nil).Redact(x)
	returnBodies.redact(x, typ)
}

// Append appends t in XDR.
func (t *LAYOUTRETURN4args) Append(b []byte) []byte {
	b = xdr.AppendBool(b, t.LoraReclaim)
	b = xdr.AppendUint32(b, uint32(t.LoraLayoutType))
	b = xdr.AppendUint32(b, uint32(t.LoraIomode))
	b = xdr.AppendUint32(b, uint32(t.LrReturntype))
	if t.LrReturntype != LAYOUTRETURN4_FILE {
		return b
	}
	b = xdr.AppendUint64(b, t.LrfOffset)
	b = xdr.AppendUint64(b, t.LrfLength)
	b = t.LrfStateid.Append(b)
	return xdr.AppendOpaque(b, t.LrfBody)
}

// EncodedSize is the number of bytes that Append appends.
func (t *LAYOUTRETURN4args) EncodedSize() int {
	if t.LrReturntype != LAYOUTRETURN4_FILE {
		return 16
	}
	return 16 + 16 + t.LrfStateid.EncodedSize() + xdr.SizeOpaque(len(t.LrfBody))
}

// Walk visits the members.
func (t *LAYOUTRETURN4args) Walk(v xdr.Visitor) {
	v.Bool("lora_reclaim", t.LoraReclaim)
	v.Enum("lora_layout_type", uint32(t.LoraLayoutType), t.LoraLayoutType.Symbol())
	v.Enum("lora_iomode", uint32(t.LoraIomode), t.LoraIomode.Symbol())
	v.Begin("lora_layoutreturn", "layoutreturn4", -1)
	v.Enum("lr_returntype", uint32(t.LrReturntype), t.LrReturntype.Symbol())
	if t.LrReturntype == LAYOUTRETURN4_FILE {
		v.Begin("lr_layout", "layoutreturn_file4", -1)
		v.Uint("lrf_offset", t.LrfOffset)
		v.Uint("lrf_length", t.LrfLength)
		v.Begin("lrf_stateid", "stateid4", -1)
		t.LrfStateid.Walk(v)
		v.End()
		returnBodies.walk(v, "lrf_body", t.LoraLayoutType, t.LrfBody)
		v.End()
	}
	v.End()
}
