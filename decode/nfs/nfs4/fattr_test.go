package nfs4

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

func TestBitmap(t *testing.T) {
	b := NewBitmap4(1, 3, 4, 33, 82, 1000)
	var got []int
	for i := b.Next(0); i >= 0; i = b.Next(i + 1) {
		got = append(got, i)
		if !b.Has(uint32(i)) {
			t.Errorf("bit %d is not set", i)
		}
	}
	if !slices.Equal(got, []int{1, 3, 4, 33, 82, 1000}) {
		t.Error(got)
	}
	if b.Has(2) || b.Has(5000) || b.Uint64() != 1<<33|1<<4|1<<3|1<<1 || b.Next(1001) != -1 {
		t.Error("wrong bits")
	}
	if s := (AttrBitmap4{b}).String(); s != "type|change|size|mode|xattr_support|1000" {
		t.Error(s)
	}
	if s := (OpBitmap4{NewBitmap4(42, 43, 100)}).String(); s != "EXCHANGE_ID|CREATE_SESSION|100" {
		t.Error(s)
	}
	// Words without a bit are kept.
	empty := AttrBitmap4{make(Bitmap4, 8)}
	enc := empty.Append(nil)
	if hex.EncodeToString(enc) != "000000020000000000000000" || empty.String() != "" {
		t.Errorf("%x %s", enc, empty)
	}
	// With does not modify its argument.
	c := b.With(2)
	if b.Has(2) || !c.Has(2) || !c.Has(1000) {
		t.Error("With")
	}
	// A long bitmap is not listed completely.
	all := Bitmap4(bytes.Repeat([]byte{0xff}, 1<<16))
	if n := len(bitNames(all, AttrName)); n > 4096 {
		t.Errorf("%d bytes of names", n)
	}
}

// TestAttrs reads a file's attributes as the Linux server sends them.
func TestAttrs(t *testing.T) {
	s := find(t, "reply", "SEQUENCE", "PUTFH", "LOOKUP", "GETFH", "GETATTR")
	var r xdr.Reader
	s.reset(&r)
	var m CompoundRes
	m.Decode(&r)
	g := m.Ops[4].Body.(*GETATTR4res)
	f := &g.Resok4.ObjAttributes
	a, err := f.Attrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{FATTR4_TYPE, FATTR4_SIZE, FATTR4_OWNER, FATTR4_TIME_MODIFY, FATTR4_MOUNTED_ON_FILEID} {
		if !a.Has(n) {
			t.Errorf("%s is missing from %s", AttrName(uint32(n)), f.Attrmask)
		}
	}
	if a.Has(FATTR4_ACL) || a.Has(-1) || a.Has(500) {
		t.Error("attributes that were not sent")
	}
	if a.Type.Symbol() == "" || a.Mode == 0 || string(a.Owner) != "0" || a.TimeModify.Seconds < 1.7e9 || a.Numlinks == 0 {
		t.Errorf("%+v", a)
	}
	back := a.Fattr4()
	if !bytes.Equal(back.Append(nil), f.Append(nil)) {
		t.Error("encoded attributes differ")
	}
	for end := range 90 {
		var some Attrs
		if err := some.DecodeUntil(f, end); err != nil {
			t.Fatal(err)
		}
		for n := range 100 {
			if some.Has(n) != (a.Has(n) && n < end) {
				t.Errorf("until %d: attribute %d is there: %t", end, n, some.Has(n))
			}
		}
		if back := some.Fattr4(); !bytes.Equal(back.Append(nil), f.Append(nil)) {
			t.Errorf("until %d: encoded attributes differ", end)
		}
	}
}

func TestAttrsRest(t *testing.T) {
	size := xdr.AppendUint64(nil, 77)
	tests := []struct {
		name string
		mask Bitmap4
		vals []byte
		bad  bool
		from int
		rest string
		tree string
	}{
		{"whole", NewBitmap4(FATTR4_SIZE), size, false, 0, "", "size: 77\n"},
		{"none", nil, nil, false, 0, "", ""},
		{"unknown", NewBitmap4(FATTR4_SIZE, 200), append(slices.Clip(size), 1, 2, 3, 4), false, 200, "01020304",
			"size: 77\nunknown attribute 200: 01020304\n"},
		{"short", NewBitmap4(FATTR4_SIZE, FATTR4_FILEID), append(slices.Clip(size), 1, 2, 3, 4), true, FATTR4_FILEID, "01020304",
			"size: 77\nmalformed fileid: 01020304\n"},
		{"first is short", NewBitmap4(FATTR4_SUPPORTED_ATTRS, FATTR4_SIZE), []byte{0, 0, 0, 9}, true, 0, "00000009",
			"malformed supported_attrs: 00000009\n"},
		{"no values", NewBitmap4(FATTR4_SIZE), nil, true, FATTR4_SIZE, "", "malformed size: \n"},
		{"trailing", NewBitmap4(FATTR4_SIZE), append(slices.Clip(size), 0, 0, 0, 5), false, restAll, "00000005",
			"size: 77\ntrailing bytes: 00000005\n"},
		{"an acl that lies", NewBitmap4(FATTR4_ACL), []byte{0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0}, true, FATTR4_ACL, "7fffffff00000000",
			"malformed acl: 7fffffff00000000\n"},
	}
	var a Attrs
	for _, c := range tests {
		f := Fattr4{AttrBitmap4{c.mask}, c.vals}
		if err := a.Decode(&f); (err != nil) != c.bad {
			t.Errorf("%s: %v", c.name, err)
		}
		if hex.EncodeToString(a.Rest) != c.rest || a.RestFrom != c.from || a.Partial != (c.rest != "" || c.bad) {
			t.Errorf("%s: partial %v, from %d: %x", c.name, a.Partial, a.RestFrom, a.Rest)
		}
		if c.bad && (a.Has(c.from) || c.from == 0 && a.Has(FATTR4_SIZE)) {
			t.Errorf("%s: has what it could not read", c.name)
		}
		if got := show(f.Walk); got != c.tree {
			t.Errorf("%s: shows\n%s", c.name, got)
		}
		back := a.Fattr4()
		if !bytes.Equal(back.AttrVals, c.vals) {
			t.Errorf("%s: encoded again %x", c.name, back.AttrVals)
		}
	}
}

// TestAttrTable checks that each attribute has a name, and one way of coding.
func TestAttrTable(t *testing.T) {
	names := map[string]bool{}
	for n, a := range attrTable {
		if a.name == "" || names[a.name] || (a.value == nil) == (a.message == nil) || (a.typ == "") != (a.message == nil) {
			t.Errorf("attribute %d: %q", n, a.name)
		}
		names[a.name] = true
	}
	if len(attrTable) != 93 {
		t.Errorf("%d attributes", len(attrTable))
	}
}

// TestAttrValues shows one value of each kind.
func TestAttrValues(t *testing.T) {
	a := Attrs{
		Mask: NewBitmap4(FATTR4_SUPPORTED_ATTRS, FATTR4_TYPE, FATTR4_FH_EXPIRE_TYPE, FATTR4_LINK_SUPPORT, FATTR4_RDATTR_ERROR, FATTR4_ACL,
			FATTR4_ACLSUPPORT, FATTR4_FILEHANDLE, FATTR4_FS_LOCATIONS, FATTR4_MODE, FATTR4_OWNER, FATTR4_TIME_MODIFY_SET, FATTR4_FS_LAYOUT_TYPES,
			FATTR4_LAYOUT_HINT, FATTR4_FS_LOCATIONS_INFO, FATTR4_MDSTHRESHOLD, FATTR4_FS_CHARSET_CAP, FATTR4_CHANGE_ATTR_TYPE, FATTR4_SEC_LABEL,
			FATTR4_MODE_UMASK, FATTR4_XATTR_SUPPORT, FATTR4_OPEN_ARGUMENTS),
		SupportedAttrs: AttrBitmap4{NewBitmap4(1, 82)},
		Type:           NF4DIR,
		FhExpireType:   FH4_VOLATILE_ANY | FH4_VOL_RENAME,
		LinkSupport:    true,
		RdattrError:    NFS4ERR_STALE,
		Acl: []Nfsace4{{Type: ACE4_ACCESS_DENIED_ACE_TYPE, Flag: ACE4_IDENTIFIER_GROUP,
			AccessMask: ACE4_READ_DATA | ACE4_SYNCHRONIZE, Who: []byte("GROUP@")}},
		Aclsupport:    3,
		Filehandle:    []byte{0xab},
		FsLocations:   FsLocations4{FsRoot: [][]byte{[]byte("a"), []byte("b")}, Locations: []FsLocation4{{Server: [][]byte{[]byte("192.0.2.1")}}}},
		Mode:          0o640,
		Owner:         []byte("root@example.org"),
		TimeModifySet: Settime4{SetIt: SET_TO_CLIENT_TIME4, Time: Nfstime4{Seconds: -1, Nseconds: 5}},
		FsLayoutTypes: []Layouttype4{LAYOUT4_SCSI, 99},
		LayoutHint:    Layouthint4{TypedBody{LAYOUT4_FLEX_FILES, []byte{0, 0, 0, 1, 0, 0, 0, 3}}},
		FsLocationsInfo: FsLocationsInfo4{FliFlags: FSLI4IF_VAR_SUB, FliItems: []FsLocationsItem4{{
			FliEntries: []FsLocationsServer4{{FlsCurrency: -1, FlsInfo: []byte{1}, FlsServer: []byte("s")}}}}},
		Mdsthreshold:   Mdsthreshold4{MthHints: []ThresholdItem4{{ThiHintset: ThresholdBitmap4{NewBitmap4(0, 3)}}}},
		FsCharsetCap:   FSCHARSET_CAP4_ALLOWS_ONLY_UTF8,
		ChangeAttrType: NFS4_CHANGE_TYPE_IS_TIME_METADATA,
		SecLabel:       SecLabel4{SlaiData: []byte{1, 2}},
		ModeUmask:      ModeUmask4{MuMode: 0o666, MuUmask: 0o022},
		XattrSupport:   true,
		OpenArguments: OpenArguments4{
			OaShareAccess: OpenArgsAccessBitmap4{NewBitmap4(1, 2)}, OaShareDeny: OpenArgsDenyBitmap4{NewBitmap4(0)},
			OaShareAccessWant: OpenArgsWantBitmap4{NewBitmap4(3, 21)}, OaOpenClaim: OpenArgsClaimBitmap4{NewBitmap4(4)},
			OaCreateMode: OpenArgsCreateBitmap4{NewBitmap4(3)},
		},
	}
	f := a.Fattr4()
	const want = `supported_attrs: 0x2 type|xattr_support
type: NF4DIR 2
fh_expire_type: 0xa FH4_VOLATILE_ANY|FH4_VOL_RENAME
link_support: true
rdattr_error: NFS4ERR_STALE 70
acl[0] nfsace4
  type: ACE4_ACCESS_DENIED_ACE_TYPE 1
  flag: 0x40 ACE4_IDENTIFIER_GROUP
  access_mask: 0x100001 ACE4_READ_DATA|ACE4_SYNCHRONIZE
  who: "GROUP@"
aclsupport: 0x3 ACL4_SUPPORT_ALLOW_ACL|ACL4_SUPPORT_DENY_ACL
filehandle: ab
fs_locations fs_locations4
  fs_root: "a"
  fs_root: "b"
  locations[0] fs_location4
    server: "192.0.2.1"
mode: 0x1a0 MODE4_RUSR|MODE4_WUSR|MODE4_RGRP
owner: "root@example.org"
time_modify_set settime4
  set_it: SET_TO_CLIENT_TIME4 1
  time: -1.000000005
fs_layout_types: LAYOUT4_SCSI 5
fs_layout_types:  99
layout_hint layouthint4
  loh_type: LAYOUT4_FLEX_FILES 4
  loh_body ff_layouthint4
    fflh_mirrors_hint ff_mirrors_hint
      ffmc_valid: true
      ffmc_mirrors: 3
fs_locations_info fs_locations_info4
  fli_flags: 0x1 FSLI4IF_VAR_SUB
  fli_valid_for: 0
  fli_items[0] fs_locations_item4
    fli_entries[0] fs_locations_server4
      fls_currency: -1
      fls_info: 01
      fls_server: "s"
mdsthreshold mdsthreshold4
  mth_hints[0] threshold_item4
    thi_layout_type:  0
    thi_hintset: 0x9 read_size|write_iosize
    thi_hintlist: 
fs_charset_cap: 0x2 FSCHARSET_CAP4_ALLOWS_ONLY_UTF8
change_attr_type: NFS4_CHANGE_TYPE_IS_TIME_METADATA 3
sec_label sec_label4
  slai_lfs labelformat_spec4
    lfs_lfs: 0
    lfs_pi: 0
  slai_data: 0102
mode_umask mode_umask4
  mu_mode: 0x1b6 MODE4_RUSR|MODE4_WUSR|MODE4_RGRP|MODE4_WGRP|MODE4_ROTH|MODE4_WOTH
  mu_umask: 0x12 MODE4_WGRP|MODE4_WOTH
xattr_support: true
open_arguments open_arguments4
  oa_share_access: 0x6 READ|WRITE
  oa_share_deny: 0x1 NONE
  oa_share_access_want: 0x200008 ANY_DELEG|OPEN_XOR_DELEGATION
  oa_open_claim: 0x10 CLAIM_FH
  oa_create_mode: 0x8 EXCLUSIVE4_1
`
	if got := show(f.Walk); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestAttrsAllocateNothing(t *testing.T) {
	f := filler{Rand: rand.New(rand.NewPCG(7, 7))}
	fa := Fattr4{usualAttrs(), nil}
	a := &Attrs{Mask: fa.Attrmask.Bitmap4, Owner: []byte("owner"), Acl: []Nfsace4{{Who: f.bytes(9)}, {Who: f.bytes(3)}}}
	fa = a.Fattr4()
	var used Attrs
	var out []byte
	run := func() {
		if err := used.Decode(&fa); err != nil {
			t.Fatal(err)
		}
		out = used.AppendValues(out[:0])
	}
	run()
	if n := testing.AllocsPerRun(20, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
	var c count
	fa.Walk(&c)
	// Symbols of masks are made of several names.
	if n := testing.AllocsPerRun(20, func() { fa.Walk(&c) }); n > 4 {
		t.Errorf("Walk: %v allocations", n)
	}
}

// usualAttrs is what a GETATTR of the Linux client asks for, and the acl.
func usualAttrs() AttrBitmap4 {
	return AttrBitmap4{NewBitmap4(FATTR4_TYPE, FATTR4_CHANGE, FATTR4_SIZE, FATTR4_FSID, FATTR4_ACL, FATTR4_FILEID, FATTR4_MODE, FATTR4_NUMLINKS, FATTR4_OWNER,
		FATTR4_OWNER_GROUP, FATTR4_RAWDEV, FATTR4_SPACE_USED, FATTR4_TIME_ACCESS, FATTR4_TIME_METADATA, FATTR4_TIME_MODIFY, FATTR4_MOUNTED_ON_FILEID)}
}

func BenchmarkAttrs(b *testing.B) {
	a := &Attrs{Mask: usualAttrs().Bitmap4, Owner: []byte("owner")}
	fa := a.Fattr4()
	var used Attrs
	b.ReportAllocs()
	for b.Loop() {
		_ = used.Decode(&fa)
	}
}
