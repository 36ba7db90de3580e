package nfs4

import "github.com/rpcrdma/toolkit/decode/xdr"

// Numbers of the attributes: RFC 7531 up to 55, RFC 5662 up to 76, RFC 7863 up
// to 80, RFC 8275 (81), RFC 8276 (82), RFC 9754 (83 to 86).
const (
	FATTR4_SUPPORTED_ATTRS    = 0
	FATTR4_TYPE               = 1
	FATTR4_FH_EXPIRE_TYPE     = 2
	FATTR4_CHANGE             = 3
	FATTR4_SIZE               = 4
	FATTR4_LINK_SUPPORT       = 5
	FATTR4_SYMLINK_SUPPORT    = 6
	FATTR4_NAMED_ATTR         = 7
	FATTR4_FSID               = 8
	FATTR4_UNIQUE_HANDLES     = 9
	FATTR4_LEASE_TIME         = 10
	FATTR4_RDATTR_ERROR       = 11
	FATTR4_ACL                = 12
	FATTR4_ACLSUPPORT         = 13
	FATTR4_ARCHIVE            = 14
	FATTR4_CANSETTIME         = 15
	FATTR4_CASE_INSENSITIVE   = 16
	FATTR4_CASE_PRESERVING    = 17
	FATTR4_CHOWN_RESTRICTED   = 18
	FATTR4_FILEHANDLE         = 19
	FATTR4_FILEID             = 20
	FATTR4_FILES_AVAIL        = 21
	FATTR4_FILES_FREE         = 22
	FATTR4_FILES_TOTAL        = 23
	FATTR4_FS_LOCATIONS       = 24
	FATTR4_HIDDEN             = 25
	FATTR4_HOMOGENEOUS        = 26
	FATTR4_MAXFILESIZE        = 27
	FATTR4_MAXLINK            = 28
	FATTR4_MAXNAME            = 29
	FATTR4_MAXREAD            = 30
	FATTR4_MAXWRITE           = 31
	FATTR4_MIMETYPE           = 32
	FATTR4_MODE               = 33
	FATTR4_NO_TRUNC           = 34
	FATTR4_NUMLINKS           = 35
	FATTR4_OWNER              = 36
	FATTR4_OWNER_GROUP        = 37
	FATTR4_QUOTA_AVAIL_HARD   = 38
	FATTR4_QUOTA_AVAIL_SOFT   = 39
	FATTR4_QUOTA_USED         = 40
	FATTR4_RAWDEV             = 41
	FATTR4_SPACE_AVAIL        = 42
	FATTR4_SPACE_FREE         = 43
	FATTR4_SPACE_TOTAL        = 44
	FATTR4_SPACE_USED         = 45
	FATTR4_SYSTEM             = 46
	FATTR4_TIME_ACCESS        = 47
	FATTR4_TIME_ACCESS_SET    = 48
	FATTR4_TIME_BACKUP        = 49
	FATTR4_TIME_CREATE        = 50
	FATTR4_TIME_DELTA         = 51
	FATTR4_TIME_METADATA      = 52
	FATTR4_TIME_MODIFY        = 53
	FATTR4_TIME_MODIFY_SET    = 54
	FATTR4_MOUNTED_ON_FILEID  = 55
	FATTR4_DIR_NOTIF_DELAY    = 56
	FATTR4_DIRENT_NOTIF_DELAY = 57
	FATTR4_DACL               = 58
	FATTR4_SACL               = 59
	FATTR4_CHANGE_POLICY      = 60
	FATTR4_FS_STATUS          = 61
	FATTR4_FS_LAYOUT_TYPES    = 62
	FATTR4_LAYOUT_HINT        = 63
	FATTR4_LAYOUT_TYPES       = 64
	FATTR4_LAYOUT_BLKSIZE     = 65
	FATTR4_LAYOUT_ALIGNMENT   = 66
	FATTR4_FS_LOCATIONS_INFO  = 67
	FATTR4_MDSTHRESHOLD       = 68
	FATTR4_RETENTION_GET      = 69
	FATTR4_RETENTION_SET      = 70
	FATTR4_RETENTEVT_GET      = 71
	FATTR4_RETENTEVT_SET      = 72
	FATTR4_RETENTION_HOLD     = 73
	FATTR4_MODE_SET_MASKED    = 74
	FATTR4_SUPPATTR_EXCLCREAT = 75
	FATTR4_FS_CHARSET_CAP     = 76
	FATTR4_CLONE_BLKSIZE      = 77
	FATTR4_SPACE_FREED        = 78
	FATTR4_CHANGE_ATTR_TYPE   = 79
	FATTR4_SEC_LABEL          = 80
	FATTR4_MODE_UMASK         = 81
	FATTR4_XATTR_SUPPORT      = 82
	FATTR4_OFFLINE            = 83
	FATTR4_TIME_DELEG_ACCESS  = 84
	FATTR4_TIME_DELEG_MODIFY  = 85
	FATTR4_OPEN_ARGUMENTS     = 86

	// draft-ietf-nfsv4-uncacheable-files, draft-ietf-nfsv4-uncacheable-directories
	FATTR4_UNCACHEABLE_FILE_DATA       = 87
	FATTR4_UNCACHEABLE_DIRENT_METADATA = 88
	// draft-ietf-nfsv4-posix-acls
	FATTR4_ACL_TRUEFORM       = 89
	FATTR4_ACL_TRUEFORM_SCOPE = 90
	FATTR4_POSIX_DEFAULT_ACL  = 91
	FATTR4_POSIX_ACCESS_ACL   = 92
)

// Attrs holds the values of attributes, each under its name in the protocol.
// Only those that Has reports mean anything.
//
// The zero value is an empty set. Opaques and texts alias the decoded message; Decode reuses the
// other memory.
type Attrs struct {
	// Mask lists the attributes, in the order of their values.
	Mask Bitmap4
	// Rest holds the values from attribute RestFrom on as they were sent: that
	// attribute is not defined, or its value could not be read, so it is unknown where the next
	// one begins. Bytes that follow the last value are kept here too. Both mean something only if
	// Partial is set.
	Rest     []byte
	RestFrom int
	Partial  bool

	reader xdr.Reader

	SupportedAttrs    AttrBitmap4
	Type              NfsFtype4
	FhExpireType      uint32
	Change            uint64
	Size              uint64
	LinkSupport       bool
	SymlinkSupport    bool
	NamedAttr         bool
	Fsid              Fsid4
	UniqueHandles     bool
	LeaseTime         uint32
	RdattrError       Nfsstat4
	Acl               []Nfsace4
	Aclsupport        uint32
	Archive           bool
	Cansettime        bool
	CaseInsensitive   bool
	CasePreserving    bool
	ChownRestricted   bool
	Filehandle        []byte
	Fileid            uint64
	FilesAvail        uint64
	FilesFree         uint64
	FilesTotal        uint64
	FsLocations       FsLocations4
	Hidden            bool
	Homogeneous       bool
	Maxfilesize       uint64
	Maxlink           uint32
	Maxname           uint32
	Maxread           uint64
	Maxwrite          uint64
	Mimetype          []byte
	Mode              uint32
	NoTrunc           bool
	Numlinks          uint32
	Owner             []byte
	OwnerGroup        []byte
	QuotaAvailHard    uint64
	QuotaAvailSoft    uint64
	QuotaUsed         uint64
	Rawdev            Specdata4
	SpaceAvail        uint64
	SpaceFree         uint64
	SpaceTotal        uint64
	SpaceUsed         uint64
	System            bool
	TimeAccess        Nfstime4
	TimeAccessSet     Settime4
	TimeBackup        Nfstime4
	TimeCreate        Nfstime4
	TimeDelta         Timedelta4
	TimeMetadata      Nfstime4
	TimeModify        Nfstime4
	TimeModifySet     Settime4
	MountedOnFileid   uint64
	DirNotifDelay     Timedelta4
	DirentNotifDelay  Timedelta4
	Dacl              Nfsacl41
	Sacl              Nfsacl41
	ChangePolicy      ChangePolicy4
	FsStatus          Fs4Status
	FsLayoutTypes     []Layouttype4
	LayoutHint        Layouthint4
	LayoutTypes       []Layouttype4
	LayoutBlksize     uint32
	LayoutAlignment   uint32
	FsLocationsInfo   FsLocationsInfo4
	Mdsthreshold      Mdsthreshold4
	RetentionGet      RetentionGet4
	RetentionSet      RetentionSet4
	RetentevtGet      RetentionGet4
	RetentevtSet      RetentionSet4
	RetentionHold     uint64
	ModeSetMasked     ModeMasked4
	SuppattrExclcreat AttrBitmap4
	FsCharsetCap      uint32
	CloneBlksize      uint32
	SpaceFreed        uint64
	ChangeAttrType    ChangeAttrType4
	SecLabel          SecLabel4
	ModeUmask         ModeUmask4
	XattrSupport      bool
	Offline           bool
	TimeDelegAccess   Nfstime4
	TimeDelegModify   Nfstime4
	OpenArguments     OpenArguments4

	UncacheableFileData       bool
	UncacheableDirentMetadata bool
	AclTrueform               Aclmodel4
	AclTrueformScope          Aclscope4
	PosixDefaultAcl           Posixacl4
	PosixAccessAcl            Posixacl4
}

type attrInfo struct {
	name    string
	value   func(*Attrs) value
	typ     string
	message func(*Attrs) xdr.Message
}

var noAttrs Attrs

// redact copies the value of an attribute.
func (t *attrInfo) redact(x *xdr.Redactor) {
	if t.value != nil {
		t.value(&noAttrs).redact(x)
	} else {
		t.message(&noAttrs).(xdr.Redactable).Redact(x)
	}
}

// attrTable says how each attribute is encoded and shown, by its number. An attribute has a
// value, or is a message with an XDR type name.
var attrTable = [...]attrInfo{
	FATTR4_SUPPORTED_ATTRS:    {name: "supported_attrs", value: func(a *Attrs) value { return (*bitmapValue)(&a.SupportedAttrs) }},
	FATTR4_TYPE:               {name: "type", value: func(a *Attrs) value { return (*ftypeValue)(&a.Type) }},
	FATTR4_FH_EXPIRE_TYPE:     {name: "fh_expire_type", value: func(a *Attrs) value { return (*fhExpireValue)(&a.FhExpireType) }},
	FATTR4_CHANGE:             {name: "change", value: func(a *Attrs) value { return (*uint64Value)(&a.Change) }},
	FATTR4_SIZE:               {name: "size", value: func(a *Attrs) value { return (*uint64Value)(&a.Size) }},
	FATTR4_LINK_SUPPORT:       {name: "link_support", value: func(a *Attrs) value { return (*boolValue)(&a.LinkSupport) }},
	FATTR4_SYMLINK_SUPPORT:    {name: "symlink_support", value: func(a *Attrs) value { return (*boolValue)(&a.SymlinkSupport) }},
	FATTR4_NAMED_ATTR:         {name: "named_attr", value: func(a *Attrs) value { return (*boolValue)(&a.NamedAttr) }},
	FATTR4_FSID:               {name: "fsid", typ: "fsid4", message: func(a *Attrs) xdr.Message { return &a.Fsid }},
	FATTR4_UNIQUE_HANDLES:     {name: "unique_handles", value: func(a *Attrs) value { return (*boolValue)(&a.UniqueHandles) }},
	FATTR4_LEASE_TIME:         {name: "lease_time", value: func(a *Attrs) value { return (*uint32Value)(&a.LeaseTime) }},
	FATTR4_RDATTR_ERROR:       {name: "rdattr_error", value: func(a *Attrs) value { return (*statusValue)(&a.RdattrError) }},
	FATTR4_ACL:                {name: "acl", value: func(a *Attrs) value { return (*aclValue)(&a.Acl) }},
	FATTR4_ACLSUPPORT:         {name: "aclsupport", value: func(a *Attrs) value { return (*aclSupportValue)(&a.Aclsupport) }},
	FATTR4_ARCHIVE:            {name: "archive", value: func(a *Attrs) value { return (*boolValue)(&a.Archive) }},
	FATTR4_CANSETTIME:         {name: "cansettime", value: func(a *Attrs) value { return (*boolValue)(&a.Cansettime) }},
	FATTR4_CASE_INSENSITIVE:   {name: "case_insensitive", value: func(a *Attrs) value { return (*boolValue)(&a.CaseInsensitive) }},
	FATTR4_CASE_PRESERVING:    {name: "case_preserving", value: func(a *Attrs) value { return (*boolValue)(&a.CasePreserving) }},
	FATTR4_CHOWN_RESTRICTED:   {name: "chown_restricted", value: func(a *Attrs) value { return (*boolValue)(&a.ChownRestricted) }},
	FATTR4_FILEHANDLE:         {name: "filehandle", value: func(a *Attrs) value { return (*handleValue)(&a.Filehandle) }},
	FATTR4_FILEID:             {name: "fileid", value: func(a *Attrs) value { return (*uint64Value)(&a.Fileid) }},
	FATTR4_FILES_AVAIL:        {name: "files_avail", value: func(a *Attrs) value { return (*uint64Value)(&a.FilesAvail) }},
	FATTR4_FILES_FREE:         {name: "files_free", value: func(a *Attrs) value { return (*uint64Value)(&a.FilesFree) }},
	FATTR4_FILES_TOTAL:        {name: "files_total", value: func(a *Attrs) value { return (*uint64Value)(&a.FilesTotal) }},
	FATTR4_FS_LOCATIONS:       {name: "fs_locations", typ: "fs_locations4", message: func(a *Attrs) xdr.Message { return &a.FsLocations }},
	FATTR4_HIDDEN:             {name: "hidden", value: func(a *Attrs) value { return (*boolValue)(&a.Hidden) }},
	FATTR4_HOMOGENEOUS:        {name: "homogeneous", value: func(a *Attrs) value { return (*boolValue)(&a.Homogeneous) }},
	FATTR4_MAXFILESIZE:        {name: "maxfilesize", value: func(a *Attrs) value { return (*uint64Value)(&a.Maxfilesize) }},
	FATTR4_MAXLINK:            {name: "maxlink", value: func(a *Attrs) value { return (*uint32Value)(&a.Maxlink) }},
	FATTR4_MAXNAME:            {name: "maxname", value: func(a *Attrs) value { return (*uint32Value)(&a.Maxname) }},
	FATTR4_MAXREAD:            {name: "maxread", value: func(a *Attrs) value { return (*uint64Value)(&a.Maxread) }},
	FATTR4_MAXWRITE:           {name: "maxwrite", value: func(a *Attrs) value { return (*uint64Value)(&a.Maxwrite) }},
	FATTR4_MIMETYPE:           {name: "mimetype", value: func(a *Attrs) value { return (*textValue)(&a.Mimetype) }},
	FATTR4_MODE:               {name: "mode", value: func(a *Attrs) value { return (*modeValue)(&a.Mode) }},
	FATTR4_NO_TRUNC:           {name: "no_trunc", value: func(a *Attrs) value { return (*boolValue)(&a.NoTrunc) }},
	FATTR4_NUMLINKS:           {name: "numlinks", value: func(a *Attrs) value { return (*uint32Value)(&a.Numlinks) }},
	FATTR4_OWNER:              {name: "owner", value: func(a *Attrs) value { return (*textValue)(&a.Owner) }},
	FATTR4_OWNER_GROUP:        {name: "owner_group", value: func(a *Attrs) value { return (*textValue)(&a.OwnerGroup) }},
	FATTR4_QUOTA_AVAIL_HARD:   {name: "quota_avail_hard", value: func(a *Attrs) value { return (*uint64Value)(&a.QuotaAvailHard) }},
	FATTR4_QUOTA_AVAIL_SOFT:   {name: "quota_avail_soft", value: func(a *Attrs) value { return (*uint64Value)(&a.QuotaAvailSoft) }},
	FATTR4_QUOTA_USED:         {name: "quota_used", value: func(a *Attrs) value { return (*uint64Value)(&a.QuotaUsed) }},
	FATTR4_RAWDEV:             {name: "rawdev", typ: "specdata4", message: func(a *Attrs) xdr.Message { return &a.Rawdev }},
	FATTR4_SPACE_AVAIL:        {name: "space_avail", value: func(a *Attrs) value { return (*uint64Value)(&a.SpaceAvail) }},
	FATTR4_SPACE_FREE:         {name: "space_free", value: func(a *Attrs) value { return (*uint64Value)(&a.SpaceFree) }},
	FATTR4_SPACE_TOTAL:        {name: "space_total", value: func(a *Attrs) value { return (*uint64Value)(&a.SpaceTotal) }},
	FATTR4_SPACE_USED:         {name: "space_used", value: func(a *Attrs) value { return (*uint64Value)(&a.SpaceUsed) }},
	FATTR4_SYSTEM:             {name: "system", value: func(a *Attrs) value { return (*boolValue)(&a.System) }},
	FATTR4_TIME_ACCESS:        {name: "time_access", value: func(a *Attrs) value { return (*timeValue)(&a.TimeAccess) }},
	FATTR4_TIME_ACCESS_SET:    {name: "time_access_set", typ: "settime4", message: func(a *Attrs) xdr.Message { return &a.TimeAccessSet }},
	FATTR4_TIME_BACKUP:        {name: "time_backup", value: func(a *Attrs) value { return (*timeValue)(&a.TimeBackup) }},
	FATTR4_TIME_CREATE:        {name: "time_create", value: func(a *Attrs) value { return (*timeValue)(&a.TimeCreate) }},
	FATTR4_TIME_DELTA:         {name: "time_delta", typ: "nfstime4", message: func(a *Attrs) xdr.Message { return &a.TimeDelta }},
	FATTR4_TIME_METADATA:      {name: "time_metadata", value: func(a *Attrs) value { return (*timeValue)(&a.TimeMetadata) }},
	FATTR4_TIME_MODIFY:        {name: "time_modify", value: func(a *Attrs) value { return (*timeValue)(&a.TimeModify) }},
	FATTR4_TIME_MODIFY_SET:    {name: "time_modify_set", typ: "settime4", message: func(a *Attrs) xdr.Message { return &a.TimeModifySet }},
	FATTR4_MOUNTED_ON_FILEID:  {name: "mounted_on_fileid", value: func(a *Attrs) value { return (*uint64Value)(&a.MountedOnFileid) }},
	FATTR4_DIR_NOTIF_DELAY:    {name: "dir_notif_delay", typ: "nfstime4", message: func(a *Attrs) xdr.Message { return &a.DirNotifDelay }},
	FATTR4_DIRENT_NOTIF_DELAY: {name: "dirent_notif_delay", typ: "nfstime4", message: func(a *Attrs) xdr.Message { return &a.DirentNotifDelay }},
	FATTR4_DACL:               {name: "dacl", typ: "nfsacl41", message: func(a *Attrs) xdr.Message { return &a.Dacl }},
	FATTR4_SACL:               {name: "sacl", typ: "nfsacl41", message: func(a *Attrs) xdr.Message { return &a.Sacl }},
	FATTR4_CHANGE_POLICY:      {name: "change_policy", typ: "change_policy4", message: func(a *Attrs) xdr.Message { return &a.ChangePolicy }},
	FATTR4_FS_STATUS:          {name: "fs_status", typ: "fs4_status", message: func(a *Attrs) xdr.Message { return &a.FsStatus }},
	FATTR4_FS_LAYOUT_TYPES:    {name: "fs_layout_types", value: func(a *Attrs) value { return (*layoutTypesValue)(&a.FsLayoutTypes) }},
	FATTR4_LAYOUT_HINT:        {name: "layout_hint", typ: "layouthint4", message: func(a *Attrs) xdr.Message { return &a.LayoutHint }},
	FATTR4_LAYOUT_TYPES:       {name: "layout_types", value: func(a *Attrs) value { return (*layoutTypesValue)(&a.LayoutTypes) }},
	FATTR4_LAYOUT_BLKSIZE:     {name: "layout_blksize", value: func(a *Attrs) value { return (*uint32Value)(&a.LayoutBlksize) }},
	FATTR4_LAYOUT_ALIGNMENT:   {name: "layout_alignment", value: func(a *Attrs) value { return (*uint32Value)(&a.LayoutAlignment) }},
	FATTR4_FS_LOCATIONS_INFO:  {name: "fs_locations_info", typ: "fs_locations_info4", message: func(a *Attrs) xdr.Message { return &a.FsLocationsInfo }},
	FATTR4_MDSTHRESHOLD:       {name: "mdsthreshold", typ: "mdsthreshold4", message: func(a *Attrs) xdr.Message { return &a.Mdsthreshold }},
	FATTR4_RETENTION_GET:      {name: "retention_get", typ: "retention_get4", message: func(a *Attrs) xdr.Message { return &a.RetentionGet }},
	FATTR4_RETENTION_SET:      {name: "retention_set", typ: "retention_set4", message: func(a *Attrs) xdr.Message { return &a.RetentionSet }},
	FATTR4_RETENTEVT_GET:      {name: "retentevt_get", typ: "retention_get4", message: func(a *Attrs) xdr.Message { return &a.RetentevtGet }},
	FATTR4_RETENTEVT_SET:      {name: "retentevt_set", typ: "retention_set4", message: func(a *Attrs) xdr.Message { return &a.RetentevtSet }},
	FATTR4_RETENTION_HOLD:     {name: "retention_hold", value: func(a *Attrs) value { return (*uint64Value)(&a.RetentionHold) }},
	FATTR4_MODE_SET_MASKED:    {name: "mode_set_masked", typ: "mode_masked4", message: func(a *Attrs) xdr.Message { return &a.ModeSetMasked }},
	FATTR4_SUPPATTR_EXCLCREAT: {name: "suppattr_exclcreat", value: func(a *Attrs) value { return (*bitmapValue)(&a.SuppattrExclcreat) }},
	FATTR4_FS_CHARSET_CAP:     {name: "fs_charset_cap", value: func(a *Attrs) value { return (*charsetValue)(&a.FsCharsetCap) }},
	FATTR4_CLONE_BLKSIZE:      {name: "clone_blksize", value: func(a *Attrs) value { return (*uint32Value)(&a.CloneBlksize) }},
	FATTR4_SPACE_FREED:        {name: "space_freed", value: func(a *Attrs) value { return (*uint64Value)(&a.SpaceFreed) }},
	FATTR4_CHANGE_ATTR_TYPE:   {name: "change_attr_type", value: func(a *Attrs) value { return (*changeTypeValue)(&a.ChangeAttrType) }},
	FATTR4_SEC_LABEL:          {name: "sec_label", typ: "sec_label4", message: func(a *Attrs) xdr.Message { return &a.SecLabel }},
	FATTR4_MODE_UMASK:         {name: "mode_umask", typ: "mode_umask4", message: func(a *Attrs) xdr.Message { return &a.ModeUmask }},
	FATTR4_XATTR_SUPPORT:      {name: "xattr_support", value: func(a *Attrs) value { return (*boolValue)(&a.XattrSupport) }},
	FATTR4_OFFLINE:            {name: "offline", value: func(a *Attrs) value { return (*boolValue)(&a.Offline) }},
	FATTR4_TIME_DELEG_ACCESS:  {name: "time_deleg_access", value: func(a *Attrs) value { return (*timeValue)(&a.TimeDelegAccess) }},
	FATTR4_TIME_DELEG_MODIFY:  {name: "time_deleg_modify", value: func(a *Attrs) value { return (*timeValue)(&a.TimeDelegModify) }},
	FATTR4_OPEN_ARGUMENTS:     {name: "open_arguments", typ: "open_arguments4", message: func(a *Attrs) xdr.Message { return &a.OpenArguments }},

	FATTR4_UNCACHEABLE_FILE_DATA:       {name: "uncacheable_file_data", value: func(a *Attrs) value { return (*boolValue)(&a.UncacheableFileData) }},
	FATTR4_UNCACHEABLE_DIRENT_METADATA: {name: "uncacheable_dirent_metadata", value: func(a *Attrs) value { return (*boolValue)(&a.UncacheableDirentMetadata) }},
	FATTR4_ACL_TRUEFORM:                {name: "acl_trueform", value: func(a *Attrs) value { return (*aclModelValue)(&a.AclTrueform) }},
	FATTR4_ACL_TRUEFORM_SCOPE:          {name: "acl_trueform_scope", value: func(a *Attrs) value { return (*aclScopeValue)(&a.AclTrueformScope) }},
	FATTR4_POSIX_DEFAULT_ACL:           {name: "posix_default_acl", typ: "posixacl4", message: func(a *Attrs) xdr.Message { return &a.PosixDefaultAcl }},
	FATTR4_POSIX_ACCESS_ACL:            {name: "posix_access_acl", typ: "posixacl4", message: func(a *Attrs) xdr.Message { return &a.PosixAccessAcl }},
}
