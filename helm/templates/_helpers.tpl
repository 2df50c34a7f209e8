{{/* Name of the application in labels. */}}
{{- define "lakewright.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Beginning of the names of all objects: the release's, with room for a component behind it. */}}
{{- define "lakewright.fullname" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "lakewright.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "lakewright.fullname" .) -}}
{{- else }}{{ .Values.serviceAccount.name | default "default" }}{{ end -}}
{{- end -}}

{{- define "lakewright.selector" -}}
app.kubernetes.io/name: {{ include "lakewright.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- define "lakewright.labels" -}}
{{ include "lakewright.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end -}}

{{- define "lakewright.tag" -}}
{{- .Values.image.tag | default .Chart.AppVersion -}}
{{- end -}}

{{/* Name of the ConfigMap with the tables file; empty if no table is declared. */}}
{{- define "lakewright.tablesConfigMap" -}}
{{- if .Values.tablesConfigMap }}{{ .Values.tablesConfigMap }}
{{- else if .Values.tables }}{{ include "lakewright.fullname" . }}-tables{{ end -}}
{{- end -}}

{{/* A number or text as a variable's value: 134217728 stays that, where Helm would write 1.34217728e+08. */}}
{{- define "lakewright.text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end -}}

{{/* Variables that an operator adds to `env`, the text so far; one that is there already would be set twice. */}}
{{- define "lakewright.furtherEnvironment" -}}
{{- $env := .env -}}
{{- range $name, $value := merge (dict) .own .root.Values.environment }}
{{- if regexMatch (printf `name: %s\s` $name) $env }}
{{- fail (printf "environment: the chart sets %s already; set the value that it is made from" $name) }}
{{- end }}
- name: {{ $name }}
  value: {{ include "lakewright.text" $value | quote }}
{{- end }}
{{- end -}}

{{/* Environment of every Lakewright container: Redis, options of stores and of catalogs, and the credentials. */}}
{{- define "lakewright.environment" -}}
- name: LAKEWRIGHT_REDIS_URL
{{- if .Values.redis.existingSecret }}
  valueFrom: {secretKeyRef: {name: {{ .Values.redis.existingSecret | quote }}, key: url}}
{{- else }}
  value: {{ .Values.redis.url | default (printf "redis://%s-redis:6379/0" (include "lakewright.fullname" .)) | quote }}
{{- end }}
{{- if .Values.storeOptionsSecret }}
- name: LAKEWRIGHT_STORE_OPTIONS
  valueFrom: {secretKeyRef: {name: {{ .Values.storeOptionsSecret | quote }}, key: options}}
{{- else if .Values.storeOptions }}
- name: LAKEWRIGHT_STORE_OPTIONS
  value: {{ .Values.storeOptions | toJson | quote }}
{{- end }}
{{- if .Values.catalogsSecret }}
- name: LAKEWRIGHT_CATALOGS
  valueFrom: {secretKeyRef: {name: {{ .Values.catalogsSecret | quote }}, key: catalogs}}
{{- else if .Values.catalogs }}
- name: LAKEWRIGHT_CATALOGS
  value: {{ .Values.catalogs | toJson | quote }}
{{- end }}
{{- if .Values.icebergFolders }}
- name: LAKEWRIGHT_ICEBERG_FOLDERS
  value: "true"
{{- end }}
{{- end -}}

{{- define "lakewright.deciderEnvironment" -}}
{{ include "lakewright.environment" . }}
- name: LAKEWRIGHT_HTTP_ADDRESS
  value: "0.0.0.0:7420"
- name: LAKEWRIGHT_TOKEN
  valueFrom: {secretKeyRef: {name: {{ required "tokenSecret names the secret with the key `token`" .Values.tokenSecret | quote }}, key: token}}
- name: LAKEWRIGHT_SWEEP_S
  value: {{ .Values.decider.sweepSeconds | quote }}
{{- with .Values.roots }}
- name: LAKEWRIGHT_ROOTS
  value: {{ join "," . | quote }}
{{- end }}
{{- with .Values.sqsQueues }}
- name: LAKEWRIGHT_SQS_QUEUES
  value: {{ join "," . | quote }}
{{- end }}
{{- with .Values.state }}
- name: LAKEWRIGHT_STATE
  value: {{ . | quote }}
{{- end }}
{{- if include "lakewright.tablesConfigMap" . }}
- name: LAKEWRIGHT_TABLES_FILE
  value: /etc/lakewright/tables.yaml
{{- end }}
{{- with .Values.buckets }}
- name: LAKEWRIGHT_BUCKETS
  value: {{ $pairs := list }}{{ range $bucket, $uri := . }}{{ $pairs = append $pairs (printf "%s=%s" $bucket $uri) }}{{ end }}{{ join "," $pairs | quote }}
{{- end }}
{{- with .Values.policy }}
- name: LAKEWRIGHT_POLICY
  value: {{ $pairs := list }}{{ range $name, $value := . }}{{ $pairs = append $pairs (printf "%s=%s" $name (include "lakewright.text" $value)) }}{{ end }}{{ join "," $pairs | quote }}
{{- end }}
{{- end -}}

{{- define "lakewright.actorEnvironment" -}}
{{ include "lakewright.environment" . }}
- name: LAKEWRIGHT_SLOTS
  value: {{ .Values.actor.slots | quote }}
- name: LAKEWRIGHT_DRIVER_MEMORY
  value: {{ .Values.actor.driverMemory | quote }}
- name: LAKEWRIGHT_SPARK_MASTER
  value: {{ .Values.actor.master | quote }}
- name: LAKEWRIGHT_ALLOW_S3
  value: {{ .Values.actor.allowS3 | quote }}
{{- with .Values.roots }}
- name: LAKEWRIGHT_ROOTS
  value: {{ join "," . | quote }}
{{- end }}
- name: LAKEWRIGHT_ACTOR_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- end -}}

{{- define "lakewright.environmentFrom" -}}
{{- with .Values.credentialsSecret }}
envFrom:
  - secretRef: {name: {{ . | quote }}}
{{- end }}
{{- end -}}

{{- define "lakewright.deciderEnvironmentFrom" -}}
{{- if or .Values.credentialsSecret .Values.decider.environmentSecret }}
envFrom:
  {{- range compact (list .Values.credentialsSecret .Values.decider.environmentSecret) }}
  - secretRef: {name: {{ . | quote }}}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "lakewright.annotations" -}}
{{- $annotations := dict -}}
{{- if and .root.Values.scrape (eq .component "decider") -}}
{{- $annotations = dict "prometheus.io/scrape" "true" "prometheus.io/port" "7420" "prometheus.io/path" "/metrics" -}}
{{- end -}}
{{- with merge (dict) .root.Values.podAnnotations $annotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "lakewright.pod" -}}
automountServiceAccountToken: false
serviceAccountName: {{ include "lakewright.serviceAccountName" .root }}
securityContext: {runAsNonRoot: true, runAsUser: 10001, runAsGroup: 10001, fsGroup: 10001, seccompProfile: {type: RuntimeDefault}}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- $selector := dict "labelSelector" (dict "matchLabels" (include "lakewright.selector" . | fromYaml)) -}}
{{- with .root.Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  - {{- merge (dict) . $selector | toYaml | nindent 4 }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "lakewright.hardened" -}}
securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
{{- end -}}
