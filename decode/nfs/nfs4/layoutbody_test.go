package nfs4

import (
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/xdr"
)

func TestLayoutBodies(t *testing.T) {
	device := [16]byte{15: 1}
	stateid := Stateid4{Seqid: 1}
	addr := Netaddr4{NaRNetid: []byte("tcp"), NaRAddr: []byte("192.0.2.1.8.1")}
	tests := []struct {
		name string
		m    xdr.Message
		want []string
	}{
		{"files layout", &LayoutContent4{TypedBody{LAYOUT4_NFSV4_1_FILES, (&Nfsv41FileLayout4{
			NflDeviceid: device, NflUtil: 0x10003, NflFhList: [][]byte{{1}, {2}}}).Append(nil)}}, []string{
			"loc_type: LAYOUT4_NFSV4_1_FILES 1", "loc_body nfsv4_1_file_layout4", "nfl_util: 0x10003 NFL4_UFLG_DENSE|NFL4_UFLG_COMMIT_THRU_MDS", "nfl_fh_list: 02"}},
		{"files device", &DeviceAddr4{TypedBody{LAYOUT4_NFSV4_1_FILES, (&Nfsv41FileLayoutDsAddr4{
			NfldaStripeIndices: []uint32{0, 1}, NfldaMultipathDsList: [][]Netaddr4{{addr}, {addr, addr}}}).Append(nil)}}, []string{
			"da_layout_type: LAYOUT4_NFSV4_1_FILES 1", "da_addr_body nfsv4_1_file_layout_ds_addr4", `na_r_addr: "192.0.2.1.8.1"`}},
		{"block layout", &LayoutContent4{TypedBody{LAYOUT4_BLOCK_VOLUME, (&PnfsBlockLayout4{
			BloExtents: []PnfsBlockExtent4{{BexVolId: device, BexLength: 4096, BexState: PNFS_BLOCK_NONE_DATA}}}).Append(nil)}}, []string{
			"loc_body pnfs_block_layout4", "bex_length: 4096", "bex_state: PNFS_BLOCK_NONE_DATA 3"}},
		{"block device", &DeviceAddr4{TypedBody{LAYOUT4_BLOCK_VOLUME, (&PnfsBlockDeviceaddr4{BdaVolumes: []PnfsBlockVolume4{
			{Type: PNFS_BLOCK_VOLUME_SIMPLE, BvSimpleInfo: PnfsBlockSimpleVolumeInfo4{BsvDs: []PnfsBlockSigComponent4{{BscSigOffset: -512, BscContents: []byte("sig")}}}},
			{Type: PNFS_BLOCK_VOLUME_STRIPE, BvStripeInfo: PnfsBlockStripeVolumeInfo4{BsvStripeUnit: 65536, BsvVolumes: []uint32{0}}},
		}}).Append(nil)}}, []string{"da_addr_body pnfs_block_deviceaddr4", "bsc_sig_offset: -512", "bsv_stripe_unit: 65536"}},
		{"block update", &Layoutupdate4{TypedBody{LAYOUT4_BLOCK_VOLUME, (&PnfsBlockLayoutupdate4{
			BluCommitList: []PnfsBlockExtent4{{BexState: PNFS_BLOCK_READWRITE_DATA}}}).Append(nil)}}, []string{
			"lou_body pnfs_block_layoutupdate4", "blu_commit_list[0] pnfs_block_extent4"}},
		{"scsi layout", &LayoutContent4{TypedBody{LAYOUT4_SCSI, (&PnfsScsiLayout4{
			SlExtents: []PnfsScsiExtent4{{SeVolId: device, SeState: PNFS_SCSI_EXT_INVALID_DATA}}}).Append(nil)}}, []string{
			"loc_body pnfs_scsi_layout4", "se_state: PNFS_SCSI_EXT_INVALID_DATA 2"}},
		{"scsi device", &DeviceAddr4{TypedBody{LAYOUT4_SCSI, (&PnfsScsiDeviceaddr4{SdaVolumes: []PnfsScsiVolume4{{
			Type: PNFS_SCSI_VOLUME_BASE, SvSimpleInfo: PnfsScsiBaseVolumeInfo4{SbvCodeSet: PS_CODE_SET_BINARY,
				SbvDesignatorType: PS_DESIGNATOR_NAA, SbvDesignator: []byte{0x60}, SbvPrKey: 9}}}}).Append(nil)}}, []string{
			"da_addr_body pnfs_scsi_deviceaddr4", "sbv_designator_type: PS_DESIGNATOR_NAA 3", "sbv_pr_key: 9"}},
		{"scsi update", &Layoutupdate4{TypedBody{LAYOUT4_SCSI, (&PnfsScsiLayoutupdate4{
			SluCommitList: []PnfsScsiRange4{{SrLength: 5}}}).Append(nil)}}, []string{"lou_body pnfs_scsi_layoutupdate4", "sr_length: 5"}},
		{"flexible files layout", &LayoutContent4{TypedBody{LAYOUT4_FLEX_FILES, (&FfLayout4{FflStripeUnit: 1, FflMirrors: []FfMirror4{{
			FfmDataServers: []FfDataServer4{{FfdsDeviceid: device, FfdsStateid: stateid, FfdsFhVers: [][]byte{{7}}, FfdsUser: []byte("u"), FfdsGroup: []byte("g")}}}},
			FflFlags: FF_FLAGS_NO_IO_THRU_MDS | FF_FLAGS_WRITE_ONE_MIRROR}).Append(nil)}}, []string{
			"loc_body ff_layout4", `ffds_user: "u"`, "ffl_flags: 0xa FF_FLAGS_NO_IO_THRU_MDS|FF_FLAGS_WRITE_ONE_MIRROR"}},
		{"flexible files device", &DeviceAddr4{TypedBody{LAYOUT4_FLEX_FILES, (&FfDeviceAddr4{FfdaNetaddrs: []Netaddr4{addr},
			FfdaVersions: []FfDeviceVersions4{{FfdvVersion: 4, FfdvMinorversion: 2, FfdvTightlyCoupled: true}}}).Append(nil)}}, []string{
			"da_addr_body ff_device_addr4", "ffdv_tightly_coupled: true"}},
		{"flexible files update", &Layoutupdate4{TypedBody{LAYOUT4_FLEX_FILES, (&FfLayoutupdate4{FflAddr: addr,
			FflDuration: Timedelta4{Seconds: 3}, FflLocal: true}).Append(nil)}}, []string{"lou_body ff_layoutupdate4", "ffl_duration nfstime4\n    seconds: 3\n    nseconds: 0"}},
		{"flexible files return", &LAYOUTRETURN4args{LoraLayoutType: LAYOUT4_FLEX_FILES, LoraIomode: LAYOUTIOMODE4_ANY, LrReturntype: LAYOUTRETURN4_FILE,
			LrfBody: (&FfLayoutreturn4{
				FflrIoerrReport:   []FfIoerr4{{FfieErrors: []DeviceError4{{DeStatus: NFS4ERR_NXIO, DeOpnum: OP_WRITE}}}},
				FflrIostatsReport: []FfIostats4{{FfisRead: IoInfo4{IiCount: 4, IiBytes: 8}}}}).Append(nil)}, []string{
			"lora_iomode: LAYOUTIOMODE4_ANY 3", "lrf_body ff_layoutreturn4", "de_status: NFS4ERR_NXIO 6", "de_opnum: OP_WRITE 38", "ii_bytes: 8"}},
		{"return of all", &LAYOUTRETURN4args{LoraLayoutType: LAYOUT4_SCSI, LrReturntype: LAYOUTRETURN4_ALL}, []string{"lr_returntype: LAYOUTRETURN4_ALL 3"}},
		{"objects stay opaque", &LayoutContent4{TypedBody{LAYOUT4_OSD2_OBJECTS, []byte{1, 2}}}, []string{"loc_type: LAYOUT4_OSD2_OBJECTS 2", "loc_body: 0102"}},
		{"unknown type", &LayoutContent4{TypedBody{77, []byte{1}}}, []string{"loc_type:  77", "loc_body: 01"}},
		{"malformed", &LayoutContent4{TypedBody{LAYOUT4_SCSI, []byte{0xff, 0, 0, 0}}}, []string{"loc_body: ff000000"}},
		{"bytes left", &DeviceAddr4{TypedBody{LAYOUT4_SCSI, []byte{0, 0, 0, 0, 1, 2, 3, 4}}}, []string{"da_addr_body: 0000000001020304"}},
		{"empty update", &Layoutupdate4{TypedBody{LAYOUT4_FLEX_FILES, nil}}, []string{"lou_body: \n"}},
	}
	for _, c := range tests {
		got := show(c.m.Walk)
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: no %q in\n%s", c.name, w, got)
			}
		}
	}
	if c, ok := tests[0].m.(*LayoutContent4).Content().(*Nfsv41FileLayout4); !ok || len(c.NflFhList) != 2 {
		t.Error("Content of a files layout")
	}
	if tests[13].m.(*LayoutContent4).Content() != nil {
		t.Error("Content of an objects layout")
	}
}

func TestNotify(t *testing.T) {
	entry := NotifyEntry4{NeFile: []byte("file")}
	var vals []byte
	vals = (&NotifyRemove4{NrmOldEntry: entry, NrmOldEntryCookie: 3}).Append(vals)
	vals = (&NotifyAdd4{NadNewEntry: entry, NadNewEntryCookie: []uint64{4}, NadLastEntry: true}).Append(vals)
	vals = (&NotifyVerifier4{}).Append(vals)
	n := DirNotify4{Notify4{Mask: NewBitmap4(uint32(NOTIFY4_REMOVE_ENTRY), uint32(NOTIFY4_ADD_ENTRY), uint32(NOTIFY4_CHANGE_COOKIE_VERIFIER)), Vals: vals}}
	const want = `notify_mask: 0x2c NOTIFY4_REMOVE_ENTRY|NOTIFY4_ADD_ENTRY|NOTIFY4_CHANGE_COOKIE_VERIFIER
notify_vals[2] notify_remove4
  nrm_old_entry notify_entry4
    ne_file: "file"
    ne_attrs fattr4
  nrm_old_entry_cookie: 3
notify_vals[3] notify_add4
  nad_new_entry notify_entry4
    ne_file: "file"
    ne_attrs fattr4
  nad_new_entry_cookie: 4
  nad_last_entry: true
notify_vals[5] notify_verifier4
  nv_old_cookieverf: 0000000000000000
  nv_new_cookieverf: 0000000000000000
`
	if got := show(n.Walk); got != want {
		t.Errorf("got\n%s", got)
	}
	if all := n.Contents(); len(all) != 3 {
		t.Errorf("%d notifications", len(all))
	}
	n.Vals = vals[:len(vals)-8]
	if got := show(n.Walk); !strings.HasSuffix(got, "  nad_last_entry: true\nnotify_vals: 0000000000000000\n") {
		t.Errorf("cut: got\n%s", got)
	}
	d := DeviceidNotify4{Notify4{Mask: NewBitmap4(1, 2), Vals: (&NotifyDeviceidDelete4{}).Append(
		(&NotifyDeviceidChange4{NdcLayouttype: LAYOUT4_SCSI, NdcImmediate: true}).Append(nil))}}
	got := show(d.Walk)
	for _, w := range []string{"NOTIFY_DEVICEID4_CHANGE|NOTIFY_DEVICEID4_DELETE", "ndc_immediate: true", "notify_vals[2] notify_deviceid_delete4"} {
		if !strings.Contains(got, w) {
			t.Errorf("no %q in\n%s", w, got)
		}
	}
}
