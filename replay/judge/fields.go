package judge

import "strings"

// class says what a difference in a field means.
type class uint8

const (
	matters class = iota
	// own is what every server chooses for itself: handles, numbers, times of its clock. It is
	// not compared.
	own
	// limit is a property of the server or its file system.
	limit
	// optional is what a server may leave out.
	optional
)

// fields has the class of each field whose differences do not matter by themselves. A name with a
// dot is a field and its container; it takes precedence over the name alone.
var fields = map[string]class{
	// Identity.
	"fileid": own, "fsid": own, "mounted_on_fileid": own, "filehandle": own, "object": own, "handle.data": own,
	"fhandle": own, "rdev": matters, "sessionid": own, "sr_sessionid": own, "csr_sessionid": own, "bctsr_sessid": own,
	"clientid": own, "eir_clientid": own, "setclientid_confirm": own, "eir_sequenceid": own, "csr_sequence": own,
	"eir_server_owner": own, "eir_server_scope": own, "eir_server_impl_id": own, "nii_name": own,
	"svid": own, "oh": own, "sequence": own,
	"stateid": own, "open_stateid": own, "lock_stateid": own, "deleg_stateid": own, "other": own, "seqid": own,
	"cookie": own, "cookieverf": own, "verf": own, "writeverf": own, "wr_writeverf": own, "lxr_cookie": own,
	"sr_sequenceid": own, "sr_slotid": own, "sr_highest_slotid": own, "sr_target_highest_slotid": own, "sr_status_flags": own,
	// Times, and attributes that record changes.
	"atime": own, "mtime": own, "ctime": own, "change": own, "before": own, "after": own, "cinfo": own,
	"time_access": own, "time_modify": own, "time_metadata": own, "time_create": own, "time_backup": own, "time_delete": own,
	"source_cinfo": own, "target_cinfo": own, "sxr_info": own, "rxr_info": own,
	// Space.
	"used": own, "space_used": own, "tbytes": own, "fbytes": own, "abytes": own, "tfiles": own, "ffiles": own, "afiles": own, "invarsec": own,
	"space_total": own, "space_free": own, "space_avail": own, "files_total": own, "files_free": own, "files_avail": own,
	"quota_avail_hard": own, "quota_avail_soft": own, "quota_used": own, "space_freed": own,
	// Capabilities of the server and its file system.
	"rtmax": limit, "rtpref": limit, "rtmult": limit, "wtmax": limit, "wtpref": limit, "wtmult": limit, "dtpref": limit,
	"maxfilesize": limit, "maxread": limit, "maxwrite": limit, "maxname": limit, "maxlink": limit, "linkmax": limit, "name_max": limit,
	"time_delta": limit, "properties": limit, "lease_time": limit, "supported_attrs": limit, "suppattr_exclcreat": limit,
	"fh_expire_type": limit, "aclsupport": limit, "xattr_support": limit, "layout_blksize": limit, "clone_blksize": limit,
	"case_insensitive": limit, "case_preserving": limit, "no_trunc": limit, "chown_restricted": limit, "link_support": limit, "symlink_support": limit,
	"change_attr_type": limit, "fs_layout_types": limit, "open_arguments": limit, "cansettime": limit, "homogeneous": limit, "unique_handles": limit,
	"eir_flags": limit, "csr_flags": limit, "bctsr_dir": limit, "csr_fore_chan_attrs": limit, "csr_back_chan_attrs": limit, "rflags": limit, "supported": limit,
	"acl": limit, "aclcnt": limit, "dfaclcnt": limit, "aclent": limit, "dfaclent": limit, "flavor": limit, "auth_flavors": limit, "sec_label": limit,
	"numlinks": matters, "nlink": matters,
	// Optional features.
	"delegation": optional, "gddr_res_non_fatal4": optional, "attributes_follow": optional, "handle_follows": optional, "obj_attributes.attributes": optional,
	"attrset": optional, "attrsset": optional, "committed": optional, "wr_committed": optional, "rdattr_error": optional,
	"mask": limit, "SECINFO": limit,
	// The lists of NFSACL, unlike the attribute of NFSv4.
	"resok.acl": matters, "acl.mask": matters, "acl.aclcnt": matters, "acl.dfaclcnt": matters, "acl.aclent": matters, "acl.dfaclent": matters,
	"SECINFO_NO_NAME": limit,
}

// classOf is the class of a field in the container that path names.
func classOf(path []string, name string) class {
	if len(path) > 0 {
		if k, ok := fields[path[len(path)-1]+"."+name]; ok {
			return k
		}
	}
	return fields[name]
}

// transient reports whether a field changes with the object, so that its value depends on the
// order of concurrent calls.
func transient(name string) bool {
	switch name {
	case "size", "eof", "nlink", "numlinks", "mode", "uid", "gid", "owner", "owner_group":
		return true
	}
	return false
}

// underOptional reports whether a place belongs to attributes or a handle that a
// server need not send.
func underOptional(path []string) bool {
	for _, p := range path {
		if p == "attributes" || p == "handle" || p == "obj_attributes" || p == "attrs" {
			return true
		}
	}
	return false
}

// sameUser compares owners as NFSv4 writes them: a number, or a name with or without
// a domain (RFC 8881, section 5.9). How a server maps names to numbers is not known
// here, except for root.
func sameUser(a, b string) bool {
	a, _, _ = strings.Cut(a, "@")
	b, _, _ = strings.Cut(b, "@")
	number := func(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
	if a == "root" {
		a = "0"
	}
	if b == "root" {
		b = "0"
	}
	return a == b || number(a) != number(b) && a != "0" && b != "0"
}
