package tshark

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// protocols maps fields of tshark to what they show: fields of the protocols'
// XDR, each named after the structure that it stands in. Values come in the
// order of the wire on both sides.
//
// A line is the field of tshark, how its values are compared, and the sources.
// It follows tshark where that shows a value in an odd place:
//   - a modification time to be set, in NFSv3, is called atime;
//   - NFSACL uses the status of NFSv3, under another name;
//   - the access wanted by OPEN is split from the delegation wanted.
const protocols = `
nfs.status2            number  attrstat.status diropres.status readlinkres.status readres.status statfsres.status readdirres.status

nfs.status3            number  NULL3res.status GETATTR3res.status SETATTR3res.status LOOKUP3res.status ACCESS3res.status READLINK3res.status READ3res.status WRITE3res.status CREATE3res.status MKDIR3res.status SYMLINK3res.status MKNOD3res.status REMOVE3res.status RMDIR3res.status RENAME3res.status LINK3res.status READDIR3res.status READDIRPLUS3res.status FSSTAT3res.status FSINFO3res.status PATHCONF3res.status COMMIT3res.status
nfs.status             number  NULL3res.status GETATTR3res.status SETATTR3res.status LOOKUP3res.status ACCESS3res.status READLINK3res.status READ3res.status WRITE3res.status CREATE3res.status MKDIR3res.status SYMLINK3res.status MKNOD3res.status REMOVE3res.status RMDIR3res.status RENAME3res.status LINK3res.status READDIR3res.status READDIRPLUS3res.status FSSTAT3res.status FSINFO3res.status PATHCONF3res.status COMMIT3res.status GETACL3res.status SETACL3res.status CompoundRes.status CbCompoundRes.status fattr4.rdattr_error
nfs.offset3            number  READ3args.offset WRITE3args.offset COMMIT3args.offset
nfs.count3             number  READ3args.count READ3resok.count WRITE3args.count WRITE3resok.count COMMIT3args.count READDIR3args.count
nfs.count3_dircount    number  READDIRPLUS3args.dircount
nfs.count3_maxcount    number  READDIRPLUS3args.maxcount
nfs.cookie3            number  READDIR3args.cookie READDIRPLUS3args.cookie
nfs.write.stable       number  WRITE3args.stable
nfs.write.committed    number  WRITE3resok.committed
nfs.read.eof           number  READ3resok.eof
nfs.createmode         number  createhow3.mode
nfs.sattrguard3        number  sattrguard3.check
nfs.type               number  mknoddata3.type
nfs.mode3              number  fattr3.mode set_mode3.mode
nfs.fattr3.type        number  fattr3.type
nfs.fattr3.nlink       number  fattr3.nlink
nfs.fattr3.uid         number  fattr3.uid
nfs.fattr3.gid         number  fattr3.gid
nfs.fattr3.size        number  fattr3.size
nfs.fattr3.used        number  fattr3.used
nfs.fattr3.fsid        number  fattr3.fsid
nfs.fattr3.fileid      number  fattr3.fileid
nfs.wcc_attr.size      number  wcc_attr.size
nfs.set_size           number  set_size3.size
nfs.uid3               number  set_uid3.uid
nfs.gid3               number  set_gid3.gid
nfs.atime.sec          number  fattr3.atime/sec set_atime.atime/sec set_mtime.mtime/sec
nfs.atime.nsec         number  fattr3.atime/nsec set_atime.atime/nsec set_mtime.mtime/nsec
nfs.mtime.sec          number  fattr3.mtime/sec wcc_attr.mtime/sec
nfs.mtime.nsec         number  fattr3.mtime/nsec wcc_attr.mtime/nsec
nfs.ctime.sec          number  fattr3.ctime/sec wcc_attr.ctime/sec
nfs.ctime.nsec         number  fattr3.ctime/nsec wcc_attr.ctime/nsec
nfs.attributes_follow  number  post_op_attr.attributes_follow pre_op_attr.attributes_follow
nfs.handle_follow      number  post_op_fh3.handle_follows
nfs.readdir.entry3.fileid     number  entry3.fileid
nfs.readdir.entry3.name       text    entry3.name
nfs.readdir.entry3.cookie     number  entry3.cookie
nfs.readdirplus.entry.fileid  number  entryplus3.fileid
nfs.readdirplus.entry.name    text    entryplus3.name
nfs.readdirplus.entry.cookie  number  entryplus3.cookie
nfs.readdir.eof        number  dirlist3.eof dirlistplus3.eof
nfs.fsinfo.rtmax       number  FSINFO3resok.rtmax
nfs.fsinfo.rtpref      number  FSINFO3resok.rtpref
nfs.fsinfo.rtmult      number  FSINFO3resok.rtmult
nfs.fsinfo.wtmax       number  FSINFO3resok.wtmax
nfs.fsinfo.wtpref      number  FSINFO3resok.wtpref
nfs.fsinfo.wtmult      number  FSINFO3resok.wtmult
nfs.fsinfo.dtpref      number  FSINFO3resok.dtpref
nfs.fsinfo.maxfilesize number  FSINFO3resok.maxfilesize
nfs.fsinfo.properties  number  FSINFO3resok.properties
nfs.fsstat3_resok.tbytes number FSSTAT3resok.tbytes
nfs.fsstat3_resok.fbytes number FSSTAT3resok.fbytes
nfs.fsstat3_resok.abytes number FSSTAT3resok.abytes
nfs.fsstat3_resok.tfiles number FSSTAT3resok.tfiles
nfs.fsstat3_resok.ffiles number FSSTAT3resok.ffiles
nfs.fsstat3_resok.afiles number FSSTAT3resok.afiles
nfs.fsstat.invarsec      number FSSTAT3resok.invarsec
nfs.pathconf.linkmax          number PATHCONF3resok.linkmax
nfs.pathconf.name_max         number PATHCONF3resok.name_max
nfs.pathconf.no_trunc         number PATHCONF3resok.no_trunc
nfs.pathconf.chown_restricted number PATHCONF3resok.chown_restricted
nfs.pathconf.case_insensitive number PATHCONF3resok.case_insensitive
nfs.pathconf.case_preserving  number PATHCONF3resok.case_preserving
nfs.symlink.to         text    symlinkdata3.symlink_data
nfs.readlink.data      text    READLINK3resok.data
nfs.data               digest  READ3resok.data/bytes WRITE3args.data/bytes READ4resok.data/bytes WRITE4args.data/bytes SETXATTR4args.sxa_value GETXATTR4resok.gxr_value client_owner4.co_ownerid

nfs.fhandle            octets  nfs_fh3.data PUTFH4args.object GETFH4resok.object fattr4.filehandle CB_RECALL4args.fh nlm4_lock.fh mountres3_ok.fhandle
nfs.name               text    diropargs3.name entry4.name
nfs.access_check       number  ACCESS3args.access ACCESS4args.access
nfs.access_supported   number  ACCESS4resok.supported
nfs.access_rights      number  ACCESS3resok.access ACCESS4resok.access

nfs.minorversion       number  CompoundArgs.minorversion CbCompoundArgs.minorversion
nfs.opcode             number
nfs.cb.operation       number
nfs.nfsstat4           number  CompoundRes.status CbCompoundRes.status fattr4.rdattr_error
nfs.tag                text    CompoundArgs.tag CompoundRes.tag CbCompoundArgs.tag CbCompoundRes.tag
nfs.offset4            number  READ4args.offset WRITE4args.offset COMMIT4args.offset LOCK4args.offset LOCKT4args.offset LOCKU4args.offset LOCK4denied.offset ALLOCATE4args.aa_offset DEALLOCATE4args.da_offset SEEK4args.sa_offset seek_res4.sr_offset COPY4args.ca_src_offset COPY4args.ca_dst_offset CLONE4args.cl_src_offset CLONE4args.cl_dst_offset READ_PLUS4args.rpa_offset
nfs.length4            number  LOCK4args.length LOCKT4args.length LOCKU4args.length LOCK4denied.length ALLOCATE4args.aa_length DEALLOCATE4args.da_length COPY4args.ca_count CLONE4args.cl_count write_response4.wr_count
nfs.symlink.linktext   text    READLINK4resok.link createtype4.linkdata
nfs.count4             number  READ4args.count WRITE4resok.count COMMIT4args.count READ_PLUS4args.rpa_count
nfs.read.data_length   number  READ4resok.data
nfs.write.data_length  number  WRITE4args.data
nfs.eof                number  READ4resok.eof seek_res4.sr_eof
nfs.stable_how4        number  WRITE4args.stable WRITE4resok.committed write_response4.wr_committed
nfs.stateid.seqid      number  stateid4.seqid
nfs.stateid.other      octets  stateid4.other
nfs.seqid              number  CLOSE4args.seqid OPEN4args.seqid OPEN_CONFIRM4args.seqid LOCKU4args.seqid CREATE_SESSION4args.csa_sequence CREATE_SESSION4resok.csr_sequence EXCHANGE_ID4resok.eir_sequenceid SEQUENCE4args.sa_sequenceid SEQUENCE4resok.sr_sequenceid CB_SEQUENCE4args.csa_sequenceid CB_SEQUENCE4resok.csr_sequenceid open_to_lock_owner4.open_seqid
nfs.lock_seqid         number  open_to_lock_owner4.lock_seqid exist_lock_owner4.lock_seqid
nfs.session_id4        octets  SEQUENCE4args.sa_sessionid SEQUENCE4resok.sr_sessionid CREATE_SESSION4resok.csr_sessionid DESTROY_SESSION4args.dsa_sessionid CB_SEQUENCE4args.csa_sessionid CB_SEQUENCE4resok.csr_sessionid BIND_CONN_TO_SESSION4args.bctsa_sessid BIND_CONN_TO_SESSION4resok.bctsr_sessid referring_call_list4.rcl_sessionid
nfs.slotid             number  SEQUENCE4args.sa_slotid SEQUENCE4resok.sr_slotid CB_SEQUENCE4args.csa_slotid CB_SEQUENCE4resok.csr_slotid
nfs.high_slotid        number  SEQUENCE4args.sa_highest_slotid SEQUENCE4resok.sr_highest_slotid CB_SEQUENCE4args.csa_highest_slotid CB_SEQUENCE4resok.csr_highest_slotid
nfs.target_high_slotid number  SEQUENCE4resok.sr_target_highest_slotid CB_SEQUENCE4resok.csr_target_highest_slotid
nfs.cachethis4         number  SEQUENCE4args.sa_cachethis CB_SEQUENCE4args.csa_cachethis
nfs.sequence.flags     number  SEQUENCE4resok.sr_status_flags
nfs.clientid           number  CREATE_SESSION4args.csa_clientid DESTROY_CLIENTID4args.dca_clientid EXCHANGE_ID4resok.eir_clientid SETCLIENTID4resok.clientid SETCLIENTID_CONFIRM4args.clientid state_owner4.clientid RENEW4args.clientid
nfs.pathname.component text    LOOKUP4args.objname open_claim4.file REMOVE4args.target CREATE4args.objname RENAME4args.oldname RENAME4args.newname LINK4args.newname
nfs.changeid4          number  fattr4.change
nfs.changeid4.before   number  change_info4.before
nfs.changeid4.after    number  change_info4.after
nfs.change_info.atomic number  change_info4.atomic
nfs.cookie4            number  READDIR4args.cookie entry4.cookie
nfs.cookie_verf4       number  READDIR4args.cookieverf/number
nfs.dircount           number  READDIR4args.dircount
nfs.maxcount           number  READDIR4args.maxcount
nfs.dirlist4.eof       number  dirlist4.eof
nfs.nfs_ftype4         number  fattr4.type createtype4.type
nfs.fattr4.size        number  fattr4.size
nfs.fattr4.fileid      number  fattr4.fileid
nfs.fattr4.mounted_on_fileid number fattr4.mounted_on_fileid
nfs.fattr4.numlinks    number  fattr4.numlinks
nfs.fattr4.space_used  number  fattr4.space_used
nfs.fattr4.space_avail number  fattr4.space_avail
nfs.fattr4.space_free  number  fattr4.space_free
nfs.fattr4.space_total number  fattr4.space_total
nfs.fattr4.files_avail number  fattr4.files_avail
nfs.fattr4.files_free  number  fattr4.files_free
nfs.fattr4.files_total number  fattr4.files_total
nfs.fattr4.maxfilesize number  fattr4.maxfilesize
nfs.fattr4.maxread     number  fattr4.maxread
nfs.fattr4.maxwrite    number  fattr4.maxwrite
nfs.fattr4.maxlink     number  fattr4.maxlink
nfs.fattr4.maxname     number  fattr4.maxname
nfs.fattr4.lease_time  number  fattr4.lease_time
nfs.fattr4.aclsupport  number  fattr4.aclsupport
nfs.fattr4.layout_blksize number fattr4.layout_blksize
nfs.fattr4.clone_block_size number fattr4.clone_blksize
nfs.fattr4_owner       text    fattr4.owner
nfs.fattr4_owner_group text    fattr4.owner_group
nfs.fattr4_link_support     number fattr4.link_support
nfs.fattr4_symlink_support  number fattr4.symlink_support
nfs.fattr4_case_insensitive number fattr4.case_insensitive
nfs.fattr4_case_preserving  number fattr4.case_preserving
nfs.fattr4_xattr_support    number fattr4.xattr_support
nfs.fattr4_fh_expire_type   number fattr4.fh_expire_type
nfs.fsid4.major        number  fsid4.major
nfs.fsid4.minor        number  fsid4.minor
nfs.nfstime4.seconds   number  fattr4.time_access/sec fattr4.time_metadata/sec fattr4.time_modify/sec fattr4.time_create/sec nfstime4.seconds settime4.time/sec nfs_impl_id4.nii_date/sec
nfs.nfstime4.nseconds  number  fattr4.time_access/nsec fattr4.time_metadata/nsec fattr4.time_modify/nsec fattr4.time_create/nsec nfstime4.nseconds settime4.time/nsec nfs_impl_id4.nii_date/nsec
nfs.mode               number  fattr4.mode mode_umask4.mu_mode
nfs.fattr4.umask       number  mode_umask4.mu_umask
nfs.specdata1          number  specdata3.specdata1 specdata4.specdata1
nfs.specdata2          number  specdata3.specdata2 specdata4.specdata2
nfs.open4.share_access number  OPEN4args.share_access/access
nfs.want               number  OPEN4args.share_access/want
nfs.open4.share_deny   number  OPEN4args.share_deny
nfs.open.opentype      number  openflag4.opentype
nfs.open.claim_type    number  open_claim4.claim
nfs.open.delegation_type   number open_delegation4.delegation_type
nfs.open.why_no_delegation number open_none_delegation4.ond_why
nfs.open_rflags        number  OPEN4resok.rflags
nfs.createmode4        number  createhow4.mode
nfs.recall             number  open_write_delegation4.recall
nfs.recall4            number  open_read_delegation4.recall
nfs.locktype4          number  LOCK4args.locktype LOCKT4args.locktype LOCKU4args.locktype LOCK4denied.locktype
nfs.lock.reclaim       number  LOCK4args.reclaim
nfs.lock.locker.new_lock_owner number locker4.new_lock_owner
nfs.open_owner4        octets  state_owner4.owner
nfs.lock_owner4        octets  state_owner4.owner/lock
nfs.callback.ident     number  SETCLIENTID4args.callback_ident CbCompoundArgs.callback_ident
nfs.cb_program         number  CREATE_SESSION4args.csa_cb_program cb_client4.cb_program
nfs.r_netid            text    netaddr4.na_r_netid
nfs.r_addr             text    netaddr4.na_r_addr
nfs.create_session_flags number CREATE_SESSION4args.csa_flags CREATE_SESSION4resok.csr_flags
nfs.exchange_id.call_flags  number EXCHANGE_ID4args.eia_flags
nfs.exchange_id.reply_flags number EXCHANGE_ID4resok.eir_flags
nfs.exchange_id.state_protect number state_protect4_a.spa_how state_protect4_r.spr_how
nfs.padsize4           number  channel_attrs4.ca_headerpadsize
nfs.maxreqsize4        number  channel_attrs4.ca_maxrequestsize
nfs.maxrespsize4       number  channel_attrs4.ca_maxresponsesize
nfs.maxrespsizecached4 number  channel_attrs4.ca_maxresponsesize_cached
nfs.maxops4            number  channel_attrs4.ca_maxoperations
nfs.maxreqs4           number  channel_attrs4.ca_maxrequests
nfs.minorid4           number  server_owner4.so_minor_id
nfs.majorid4           octets  server_owner4.so_major_id
nfs.scope              octets  EXCHANGE_ID4resok.eir_server_scope
nfs.nii_domain4        text    nfs_impl_id4.nii_domain
nfs.nii_name4          text    nfs_impl_id4.nii_name
nfs.secinfo.style      number  SECINFO_NO_NAME4args.style
nfs.secinfo.flavor     number  secinfo4.flavor
nfs.reclaim_one_fs4    number  RECLAIM_COMPLETE4args.rca_one_fs
nfs.acetype4           number  nfsace4.type
nfs.aceflags4          number  nfsace4.flag
nfs.acemask4           number  nfsace4.access_mask
nfs.who                text    nfsace4.who
nfs.xattr.key          text    GETXATTR4args.gxa_name SETXATTR4args.sxa_key REMOVEXATTR4args.rxa_name LISTXATTRS4resok.lxr_names
nfs.setxattr.options   number  SETXATTR4args.sxa_option
nfs.lisxtattr.cookie   number  LISTXATTRS4args.lxa_cookie LISTXATTRS4resok.lxr_cookie
nfs.lisxtattr.maxcount number  LISTXATTRS4args.lxa_maxcount

nfsacl.mask            number  GETACL3args.mask secattr.mask
nfsacl.aclcnt          number  secattr.aclcnt
nfsacl.dfaclcnt        number  secattr.dfaclcnt
nfsacl.aclent.type     number  aclent.type
nfsacl.aclent.uid      number  aclent.id
nfsacl.aclent.perm     number  aclent.perm

mount.path             text    DirpathMessage.dirpath
mount.status           number  Mountres3.fhs_status
mount.flavor           number  mountres3_ok.auth_flavors
portmap.prog           number  Mapping.prog
portmap.version        number  Mapping.vers
portmap.proto          number  Mapping.prot
portmap.port           number  Mapping.port PortMessage.port
nlm.block              number  Nlm4Lockargs.block
nlm.exclusive          number  Nlm4Lockargs.exclusive
nlm.reclaim            number  Nlm4Lockargs.reclaim
nlm.state              number  Nlm4Lockargs.state
nlm.stat               number  nlm4_stat.stat
nlm.lock.caller_name   text    nlm4_lock.caller_name
nlm.lock.svid          number  nlm4_lock.svid
nlm.lock.l_offset64    number  nlm4_lock.l_offset
nlm.lock.l_len64       number  nlm4_lock.l_len
nlm.cookie             octets  Nlm4Lockargs.cookie Nlm4Unlockargs.cookie Nlm4Res.cookie
nlm.lock.owner         octets  nlm4_lock.oh
`

// sources maps "structure.field" to the fields of tshark that show it.
var sources = map[string][]string{}

func protocolFields() []field {
	kinds := map[string]kind{"number": number, "octets": octets, "text": text, "digest": digest}
	var list []field
	for _, line := range strings.Split(protocols, "\n") {
		w := strings.Fields(line)
		if len(w) == 0 {
			continue
		}
		k, ok := kinds[w[1]]
		if !ok {
			panic("unknown kind in: " + line)
		}
		list = append(list, field{name: w[0], level: messageLevel, kind: k})
		for _, s := range w[2:] {
			sources[s] = append(sources[s], w[0])
		}
	}
	return list
}

// collector walks arguments and results and files their values under the
// names of tshark.
type collector struct {
	out   values
	stack []string
	data  func(xdr.Data) []byte // finds data in chunks
}

var _ xdr.Visitor = (*collector)(nil)

// walk collects a message whose type is called name.
func (c *collector) walk(name string, m xdr.Message) {
	c.stack = append(c.stack[:0], name)
	m.Walk(c)
}

func (c *collector) put(name, value string) {
	if c.stack[len(c.stack)-1] == "stateid4" && slices.Contains(c.stack, "CLOSE4res") {
		return // tshark says only that it is deprecated (RFC 7530, section 16.2.5)
	}
	key := c.stack[len(c.stack)-1] + "." + name
	if key == "state_owner4.owner" && len(c.stack) > 1 && strings.Contains(c.stack[1], "LOCK") {
		key += "/lock"
	}
	for _, f := range sources[key] {
		if fieldByName[f].kind == digest {
			value = digest.canonical(value)
		}
		c.out.add(f, value)
	}
}

// Begin implements xdr.Visitor.
func (c *collector) Begin(_, typ string, _ int) { c.stack = append(c.stack, typ) }

// End implements xdr.Visitor.
func (c *collector) End() { c.stack = c.stack[:len(c.stack)-1] }

// Uint implements xdr.Visitor.
func (c *collector) Uint(name string, v uint64) { c.put(name, num(v)) }

// Int implements xdr.Visitor.
func (c *collector) Int(name string, v int64) { c.put(name, num(uint64(v))) }

// Bool implements xdr.Visitor.
func (c *collector) Bool(name string, v bool) { c.put(name, boolean(v)) }

// Enum implements xdr.Visitor. The status of each operation of a COMPOUND has
// a name of its own.
func (c *collector) Enum(name string, v uint32, _ string) {
	c.put(name, num(v))
	if len(c.stack) == 2 && strings.HasSuffix(c.stack[0], "CompoundRes") && strings.HasSuffix(name, "status") {
		c.out.add("nfs.nfsstat4", num(v))
		c.out.add("nfs.status", num(v))
	}
}

// Flags implements xdr.Visitor.
func (c *collector) Flags(name string, v uint64, symbols string) {
	c.put(name, num(v))
	switch name {
	case "share_access":
		c.put(name+"/access", num(v&0xff))
		if v > 0xff {
			c.put(name+"/want", num(v&^0xff))
		}
	case "spo_must_enforce", "spo_must_allow":
		// tshark gives each operation of the mask the name of an operation of
		// the COMPOUND.
		for n := range uint32(128) {
			if slices.Contains(strings.Split(symbols, "|"), nfs4.OpName(n)) {
				c.out.add("nfs.opcode", num(n))
			}
		}
	}
}

// String implements xdr.Visitor.
func (c *collector) String(name string, v []byte) { c.put(name, str(v)) }

// Bytes implements xdr.Visitor.
func (c *collector) Bytes(name string, v []byte) {
	c.put(name, bin(v))
	var n uint64
	for _, b := range v {
		n = n<<8 | uint64(b)
	}
	c.put(name+"/number", num(n))
}

// Time implements xdr.Visitor.
func (c *collector) Time(name string, sec int64, nsec uint32) {
	c.put(name+"/sec", num(uint64(sec)))
	c.put(name+"/nsec", num(nsec))
}

// Data implements xdr.Visitor.
func (c *collector) Data(name string, d xdr.Data) {
	b := c.data(d)
	switch name {
	case "data":
		if c.stack[len(c.stack)-1] != "READLINK3resok" {
			c.put(name, num(d.Length))
			c.put(name+"/bytes", bin(b))
			return
		}
	}
	c.put(name, str(b))
}

// nfsMessage is shorter than its other name.
type nfsMessage = xdr.Message

// typeName is the name of a message's Go type without its package.
func typeName(m xdr.Message) string {
	s := fmt.Sprintf("%T", m)
	return s[strings.LastIndexByte(s, '.')+1:]
}
