"""Exceptions of table libraries and stores by their simple names, with what each has to mean."""

from actor.failures import Meaning
from actor.rewrite.model import Verdict
from shared.errors import LakewrightError, PermanentError, RetryableError

Expected = tuple[Meaning, Verdict]

_NOTHING_KNOWN = (Meaning.TRANSIENT, Verdict.UNKNOWN)

OF_DELTA: dict[Expected, str] = {
    (Meaning.TRANSIENT, Verdict.TAKEN): "ConcurrentDeleteReadException ConcurrentDeleteDeleteException",
    (Meaning.TRANSIENT, Verdict.CHANGED): "MetadataChangedException ProtocolChangedException",
    (Meaning.TRANSIENT, Verdict.REFUSED): "ConcurrentAppendException ConcurrentTransactionException "
    "ConcurrentWriteException DeltaConcurrentModificationException",
    (Meaning.UNSUPPORTED, Verdict.UNKNOWN): "DeltaTableFeatureException DeltaUnsupportedTableFeatureException "
    "InvalidProtocolVersionException",
    (Meaning.REFUSED, Verdict.UNKNOWN): "InvariantViolationException DeltaInvariantViolationException "
    "InnerInvariantViolationException",
    (Meaning.PERMANENT, Verdict.UNKNOWN): "ColumnMappingUnsupportedException DeltaArithmeticException "
    "DeltaColumnMappingUnsupportedException DeltaCommandUnsupportedWithDeletionVectorsException "
    "DeltaIllegalArgumentException DeltaIndexOutOfBoundsException DeltaStreamingNonAdditiveSchemaIncompatibleException "
    "DeltaUnsupportedOperationException",
    _NOTHING_KNOWN: "ColumnMappingException CommitCompletionUnknownException CommitConflictFailure "
    "CommitCoordinatorGetCommitsFailedException CommitFailedException CommitLimitReachedException "
    "CredentialFetchFailedException DeltaAnalysisException DeltaChecksumException DeltaFileAlreadyExistsException "
    "DeltaFileNotFoundException DeltaIOException DeltaIllegalStateException DeltaNoSuchTableException "
    "DeltaRuntimeException DeltaSparkException DeltaTablePropertyValidationFailedException EmptySchemaWriteException "
    "IllegalStateTransitionException InsertReplaceOnOrUsingMaterializeSourceError InvalidTargetTableException "
    "MergeIntoMaterializeSourceError NoSuchTableException ProtocolDowngradeException TemporallyUnstableInputException "
    "TimestampEarlierThanCommitRetentionException UCCommitCoordinatorException UnsupportedTableFormatException "
    "UpgradeNotAllowedException VersionNotFoundException",
}

OF_ICEBERG: dict[Expected, str] = {
    (Meaning.TRANSIENT, Verdict.TAKEN): "ValidationException CherrypickAncestorCommitException DeleteException "
    "DuplicateWAPCommitException RetryableValidationException",
    (Meaning.TRANSIENT, Verdict.BUSY): "CommitFailedException AlreadyExistsException",
    (Meaning.MISSING, Verdict.REFUSED): "NoSuchTableException NoSuchIcebergTableException NoSuchNamespaceException "
    "NoSuchViewException NoSuchIcebergViewException",
    (Meaning.PERMANENT, Verdict.REFUSED): "BadRequestException ForbiddenException NotAuthorizedException "
    "UnprocessableEntityException",
    (Meaning.TRANSIENT, Verdict.REFUSED): "ServiceUnavailableException CleanableFailure",
    (Meaning.PERMANENT, Verdict.UNKNOWN): "NoSuchWarehouseException",
    _NOTHING_KNOWN: "BulkDeletionFailureException CommitStateUnknownException InvalidStatsFileException "
    "InvalidWkbException LockException NamespaceNotEmptyException NoSuchPlanIdException NoSuchPlanTaskException "
    "NotCompleteException NotFoundException PendingUpdateFailedException RESTException RemotePlanTimeoutException "
    "RuntimeIOException RuntimeMetaException ServiceFailureException UncheckedInterruptedException "
    "UncheckedSQLException UnrecoverableException ValidationFailureException WaitingForLockException",
}

OF_STORES: dict[Expected, str] = {
    (Meaning.PERMANENT, Verdict.UNKNOWN): "AccessDeniedException AccessControlException UnknownStoreException "
    "PathAccessDeniedException PathPermissionException UnsupportedFileSystemException "
    "NoSuchBucketException NullPointerException ClassCastException ArrayIndexOutOfBoundsException "
    "IllegalArgumentException NumberFormatException ArithmeticException NegativeArraySizeException ArrayStoreException "
    "DateTimeException DateTimeParseException MatchError NotImplementedError NotSerializableException",
    (Meaning.REFUSED, Verdict.UNKNOWN): "DamagedInput SchemaColumnConvertNotSupportedException ZstdIOException "
    "ZstdException LZ4Exception ParquetCryptoRuntimeException",
    _NOTHING_KNOWN: "IOException FileNotFoundException NoSuchFileException FileSystemException EOFException "
    "SocketException SocketTimeoutException ConnectException UnknownHostException NoRouteToHostException SSLException "
    "SSLHandshakeException InterruptedException InterruptedIOException ClosedByInterruptException TimeoutException "
    "RejectedExecutionException NoHttpResponseException ConnectionClosedException ConnectTimeoutException "
    "IllegalStateException ConcurrentModificationException NoSuchElementException SQLException UncheckedIOException "
    "SafeModeException StandbyException DSQuotaExceededException NoClassDefFoundError "
    "AWSServiceThrottledException AWSStatus500Exception AWSNoResponseException AWSClientIOException "
    "RemoteFileChangedException S3Exception SdkClientException AbortedException ApiCallTimeoutException "
    "ApiCallAttemptTimeoutException StorageException AbfsRestOperationException DataLakeStorageException "
    "SparkException AnalysisException TaskKilledException ParquetDecodingException",
}

OF_HADOOP: dict[Expected, str] = {
    (Meaning.PERMANENT, Verdict.UNKNOWN): "AccessControlException AuthorizationException PathAccessDeniedException "
    "PathPermissionException SnapshotAccessControlException UnsupportedFileSystemException InvalidPathException "
    "NotInMountpointException DuplicatedOptionException IllegalNumberOfArgumentsException NotEnoughArgumentsException "
    "TooManyArgumentsException UnknownCommandException UnknownOptionException",
    (Meaning.REFUSED, Verdict.UNKNOWN): "ChecksumException",
    _NOTHING_KNOWN: "AclException AlreadyBeingCreatedException AlreadyClosedException AlreadyExistsException "
    "AsyncCallLimitExceededException AuthenticationException BlockMissingException BlockPinningException "
    "ByteBufferAllocationStacktraceException CallQueueOverflowException CannotObtainBlockLengthException "
    "ClosedIOException ClusterStorageCapacityExceededException CommandInterruptException "
    "ConnectTimeoutException CorruptMetaHeaderException DSQuotaExceededException "
    "DirectoryListingStartAfterNotFoundException FSError FTPException FatalRpcServerException "
    "FileAlreadyExistsException InvalidBlockTokenException InvalidDecodingException "
    "InvalidEncryptionKeyException InvalidPathHandleException InvalidRequestException InvalidTopologyException "
    "IpcException KerberosAuthException KerberosDiagsFailure LeakDetectorHeapByteBufferPoolException "
    "LeakedByteBufferException MissingEventsException MultiException MultipleIOException "
    "NSQuotaExceededException NativeIOException NoECPolicySetException "
    "NotReplicatedYetException ObserverRetryOnActiveException ParentNotDirectoryException "
    "PartialGroupNameException PathExistsException PathIOException PathIsDirectoryException "
    "PathIsNotDirectoryException PathIsNotEmptyDirectoryException PathNotFoundException PathOperationException "
    "QuotaByStorageTypeExceededException QuotaExceededException ReleasingUnallocatedByteBufferException "
    "RemoteException ReplaceDatanodeOnFailure ReplicaNotFoundException RetriableException "
    "RetryStartFileException RpcClientException RpcException RpcNoSuchMethodException "
    "RpcNoSuchProtocolException RpcServerException SafeModeException SignerException "
    "StandbyException UnexpectedServerException UnknownCipherSuiteException "
    "UnknownCryptoProtocolVersionException UnresolvedLinkException UnresolvedPathException "
    "UnsupportedMultipartUploaderException VersionMismatchException WrappedIOException XAttrNotFoundException "
    "ZeroCopyUnavailableException",
}
"""Of its file systems, RPC and security."""

OF_S3: dict[Expected, str] = {
    (Meaning.PERMANENT, Verdict.UNKNOWN): "AWSBadRequestException AWSRedirectException AWSUnsupportedFeatureException "
    "InstantiationIOException InvalidObjectStateException NoSuchBucketException NoVersionAttributeException "
    "UnknownStoreException UnsupportedRequestException",
    _NOTHING_KNOWN: "AWSApiCallTimeoutException AWSClientIOException AWSNoResponseException AWSS3IOException "
    "AWSServiceIOException AWSServiceThrottledException AWSStatus500Exception AbortedException "
    "ApiCallAttemptTimeoutException ApiCallTimeoutException AuditFailureException AuditOperationRejectedException "
    "AwsServiceException BucketAlreadyExistsException BucketAlreadyOwnedByYouException Crc32MismatchException "
    "CredentialInitializationException DelegationTokenIOException EncryptionTypeMismatchException "
    "EndpointDiscoveryFailedException ExpiredTokenException FakeIoException HttpChannelEOFException "
    "IdpCommunicationErrorException IdpRejectedClaimException InvalidAuthorizationMessageException "
    "InvalidIdentityTokenException InvalidRequestException InvalidWriteOffsetException "
    "MalformedPolicyDocumentException MultiObjectDeleteException NoAuthWithAWSException NoAwsCredentialsException "
    "NoSuchKeyException NoSuchUploadException NonRetryableException ObjectAlreadyInActiveTierErrorException "
    "ObjectNotInActiveTierErrorException PackedPolicyTooLargeException PathCommitException "
    "RangeNotSatisfiableEOFException RegionDisabledException RemoteFileChangedException RenameFailedException "
    "ResponseOrException RetryableException S3Error S3Exception SdkCancellationException SdkClientException "
    "SdkException SdkInterruptedException SdkServiceException StsException TokenAcquisitionFailedException "
    "TooManyPartsException ValidationFailure",
}
"""Of s3a and Amazon's SDK."""

OF_CATALOGS: dict[Expected, str] = {
    (Meaning.TRANSIENT, Verdict.BUSY): "AlreadyExistsException",
    _NOTHING_KNOWN: "ApiException CollectionMapKeyException ConfigValSecurityException DeadlineException "
    "DeltaApiException HiveMetaException IncompatibleMetastoreException IndexAlreadyExistsException "
    "InvalidInputException InvalidObjectException InvalidOperationException InvalidPartitionException "
    "MetaException NoSuchLockException NoSuchObjectException NoSuchTxnException RetryException "
    "TApplicationException TEOFException TException TInvalidSaslFrameException TProtocolException "
    "TSaslNegotiationException TTransportException TxnAbortedException TxnOpenException "
    "UnknownDBException UnknownPartitionException UnknownTableException",
}
"""Of clients of Unity, of Hive's metastore, and of the protocol below that."""

OF_PARQUET: dict[Expected, str] = {
    (Meaning.REFUSED, Verdict.UNKNOWN): "CompressionCodecNotSupportedException KeyAccessDeniedException "
    "ParquetCryptoRuntimeException TagVerificationException",
    _NOTHING_KNOWN: "BadConfigurationException ByteBufferAllocationStacktraceException CompilationException "
    "GlobParseException IncompatibleSchemaModificationException InvalidFileOffsetException InvalidRecordException "
    "InvalidSchemaException LeakDetectorHeapByteBufferAllocatorException LeakedByteBufferException "
    "MissingOffsetIndexException OutputStreamCloseException ParquetCloseResourceException "
    "ParquetCompressionCodecException ParquetDecodingException ParquetEmptyBlockException "
    "ParquetEncodingException ParquetMemoryManagerRuntimeException ParquetRuntimeException "
    "ParquetSizeOverflowException RecordMaterializationException ReleasingUnallocatedByteBufferException "
    "SemanticVersionParseException ShouldNeverHappenException StatisticsClassException UnknownColumnException "
    "UnknownColumnTypeException VersionParseException",
}

OF_PYICEBERG: dict[type[LakewrightError], str] = {
    PermanentError: "UnauthorizedError ForbiddenError OAuthError NotInstalledError ValidationError",
    RetryableError: "TableAlreadyExistsError ViewAlreadyExistsError NamespaceNotEmptyError NamespaceAlreadyExistsError "
    "NoSuchTableError NoSuchIcebergTableError NoSuchViewError NoSuchIdentifierError NoSuchNamespaceError "
    "NoSuchPlanTaskError RESTError BadRequestError ServiceUnavailableError ServerError AuthorizationExpiredError "
    "TooManyRequestsError NoSuchPropertyException SignError ResolveError DynamoDbError ConditionalCheckFailedException "
    "GenericDynamoDbError CommitFailedException CommitStateUnknownException WaitingForLockException "
    "ValidationException",
}
"""Of catalogs, as deciders meet them; that there is no table or namespace is caught where it is an answer."""

OF_OBSTORE: dict[type[LakewrightError], str] = {
    PermanentError: "InvalidPathError NotSupportedError PermissionDeniedError UnauthenticatedError "
    "UnknownConfigurationKeyError",
    RetryableError: "BaseError GenericError NotFoundError JoinError AlreadyExistsError PreconditionError "
    "NotModifiedError",
}
"""Of object stores, as deciders meet them; that there is no object is caught where it is an answer."""

SAYING: list[tuple[str, str, Meaning]] = [
    ("S3Exception", "Access Denied (Service: S3, Status Code: 403, Request ID: 1)", Meaning.PERMANENT),
    ("S3Exception", "ExpiredToken: refresh it (Service: S3, Status Code: 400)", Meaning.TRANSIENT),
    ("AccessDeniedException", "s3a://b/f: RequestTimeTooSkewed: (Status Code: 403)", Meaning.TRANSIENT),
    ("S3Exception", "Slow Down (Service: S3, Status Code: 503, Request ID: 1)", Meaning.TRANSIENT),
    (
        "AWSBadRequestException",
        "s3a://b/f: The authorization header is malformed (Status Code: 400)",
        Meaning.PERMANENT,
    ),
    ("AWSBadRequestException", "s3a://b/f: RequestTimeout (Status Code: 400)", Meaning.TRANSIENT),
    ("StorageException", "a@b does not have storage.objects.get access to the object", Meaning.PERMANENT),
    ("StorageException", "429 Too Many Requests", Meaning.TRANSIENT),
    ("AbfsRestOperationException", 'Operation failed: "not permitted", 403, HEAD, https://x', Meaning.PERMANENT),
    ("AbfsRestOperationException", 'Operation failed: "busy", 503, PUT, https://x', Meaning.TRANSIENT),
    ("BlobStorageException", "Status code 403, AuthorizationFailure", Meaning.PERMANENT),
    ("SparkUnsupportedOperationException", "Unsupported encoding: BYTE_STREAM_SPLIT", Meaning.REFUSED),
    ("SparkException", "Lost task: io.lakewright.parquet.DamagedInput: f differs from its checksum", Meaning.REFUSED),
    ("ParquetDecodingException", "page 3 of f: CRC checksum verification failed", Meaning.REFUSED),
    ("ChecksumException", "Checksum error: /t/f.parquet at 0 exp: 1 got: 2", Meaning.REFUSED),
    (
        "IOException",
        "can not read class org.apache.parquet.format.PageHeader: don't know what type: 15",
        Meaning.REFUSED,
    ),
    (
        "RuntimeIOException",
        "java.io.IOException: can not read class org.apache.iceberg.shaded.org.apache.parquet.format.PageHeader: x",
        Meaning.REFUSED,
    ),
    ("RuntimeException", "f is not a Parquet file. Expected magic number at tail", Meaning.REFUSED),
    ("RuntimeException", "corrupted file: the footer index is not within the file: -1", Meaning.REFUSED),
    ("IOException", "FAILED_TO_UNCOMPRESS(5)", Meaning.REFUSED),
    ("MalformedInputException", "offset outside destination buffer: offset=39", Meaning.REFUSED),
    ("IOException", "invalid distance too far back", Meaning.REFUSED),
    ("ZipException", "invalid stored block lengths", Meaning.REFUSED),
    ("DataFormatException", "incorrect header check", Meaning.REFUSED),
    ("IOException", "unknown compression method", Meaning.REFUSED),
    ("SocketException", "invalid block", Meaning.TRANSIENT),
    ("AccessDeniedException", "s3a://b/f: InvalidObjectState (Status Code: 403)", Meaning.PERMANENT),
    ("ApiException", "getTable call failed with: 403 - no", Meaning.PERMANENT),
    ("ApiException", "getTable call failed with: 503 - busy", Meaning.TRANSIENT),
    ("MetaException", "org.apache.hadoop.security.AccessControlException: Permission denied", Meaning.PERMANENT),
    (
        "SparkUpgradeException",
        "[INCONSISTENT_BEHAVIOR_CROSS_VERSION.READ_ANCIENT_DATETIME] You may get a different result",
        Meaning.REFUSED,
    ),
    ("AnalysisException", "[PARQUET_TYPE_NOT_SUPPORTED] INT96 (x)", Meaning.REFUSED),
    (
        "BadConfigurationException",
        "Class org.apache.hadoop.io.compress.BrotliCodec was not found",
        Meaning.REFUSED,
    ),
    ("SocketTimeoutException", "Read timed out, NullPointerException", Meaning.TRANSIENT),
    ("SparkException", "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file f", Meaning.TRANSIENT),
    ("IOException", "No space left on device", Meaning.TRANSIENT),
]
