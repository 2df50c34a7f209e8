{{- define "lakewright.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "lakewright.selector" -}}
app.kubernetes.io/name: lakewright
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

{{/* Environment of every Lakewright container: Redis, options of stores and of catalogs, and the credentials. */}}
{{- define "lakewright.environment" -}}
- name: LAKEWRIGHT_REDIS_URL
{{- if .Values.redis.existingSecret }}
  valueFrom: {secretKeyRef: {name: {{ .Values.redis.existingSecret | quote }}, key: url}}
{{- else }}
  value: {{ .Values.redis.url | default (printf "redis://%s-redis:6379/0" (include "lakewright.name" .)) | quote }}
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

{{- define "lakewright.pod" -}}
automountServiceAccountToken: false
serviceAccountName: {{ include "lakewright.name" . }}
securityContext: {runAsNonRoot: true, runAsUser: 10001, runAsGroup: 10001, fsGroup: 10001, seccompProfile: {type: RuntimeDefault}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "lakewright.hardened" -}}
securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
{{- end -}}
